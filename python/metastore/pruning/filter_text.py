"""The text of a filter as the tree that sqlglot makes of it."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parsers.spark import SparkParser

from metastore.errors import InvalidArgument
from metastore.pruning.conditions import require_rule
from metastore.pruning.literals import NOT_UTF8

if TYPE_CHECKING:
    from sqlglot import Token

_MOST_SHOWN = 500
"""So many characters of a filter are shown in an error."""
_SPARK = Dialect.get_or_raise("spark")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_AS_WRITTEN = ("DATE_TRUNC", "TRUNC", "DATE_ADD", "DATE_SUB")
"""Calls whose units sqlglot would spell out: to Spark some of these mean nothing, or are columns.

They are renamed for its parser, which the compiled one, of `sqlglot[c]`, lets nobody inherit from.
"""
_WITHOUT_UNIT = 2  # arguments
_MARK = "AS_WRITTEN_"
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def parse_condition(text: str) -> exp.Expr:
    """The tree of a condition in Spark's SQL.

    Raises:
        InvalidArgument: It is no condition.

    Example:
        >>> parse_condition("a > 1").sql("spark")
        'a > 1'
    """
    if not isinstance(text, str):
        raise InvalidArgument("filter", f"{text!r} is no text", "Write what would follow WHERE, as in 'amount > 100'.")
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    try:
        found = SparkParser(dialect=_SPARK).parse_into(exp.Condition, _tokens_of(text), text)
    except RecursionError:
        raise
    except Exception as error:  # of arguments that sqlglot does not expect it raises more than its own errors
        raise InvalidArgument("filter", f"{shown!r} is no condition of Spark's SQL", _place_of(error)) from error
    if len(found) != 1 or found[0] is None or isinstance(found[0], exp.Command | exp.Query):
        raise InvalidArgument("filter", f"{shown!r} is no condition", "Write what would follow WHERE.")
    return found[0].transform(_restored, copy=False)


def _restored(node: exp.Expr) -> exp.Expr:
    """A call under its own name; with a unit as an argument it is what sqlglot makes of it."""
    if not (isinstance(node, exp.Anonymous) and str(node.this).startswith(_MARK)):
        return node
    name = str(node.this).removeprefix(_MARK)
    if len(node.expressions) != _WITHOUT_UNIT:
        made: exp.Expr = SparkParser.FUNCTIONS[name](node.expressions)
        return made
    node.set("this", name)
    return node


def _tokens_of(text: str) -> list[Token]:
    """What sqlglot's parser reads: texts as Spark does, and calls that are kept under names that it does not know."""
    tokens = _SPARK.tokenize(text)
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.token_type == TokenType.STRING:
            token.text = _unescaped(text[token.start + 1 : token.end])
        elif following and following.token_type == TokenType.L_PAREN and token.text.upper() in _AS_WRITTEN:
            token.text = f"{_MARK}{token.text.upper()}"
    return tokens


def _place_of(error: Exception) -> str:
    places = getattr(error, "errors", None) or []
    first = next((one for one in places if one.get("line")), None)
    return f"It stops at {first['highlight']!r} (line {first['line']}, column {first['col']})." if first else ""


def _unescaped(raw: str) -> str:
    """A string literal as Spark reads it."""

    def replaced(found: re.Match[str]) -> str:
        short, long, octal, other = found.groups()
        if other is not None:
            return _ESCAPED.get(other, other)
        code = int(octal, 8) if octal else int(short or long, 16)
        return chr(code) if code <= 0x10FFFF else NOT_UTF8

    return _ESCAPE.sub(replaced, raw)


def unwrap(tree: exp.Expr) -> exp.Expr:
    """The expression within parentheses."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def has_only(tree: exp.Expr, *names: str) -> bool:
    """Return whether a node says nothing but the parts that a rule looks at: parsers learn new words."""
    return all(name in names for name, value in tree.args.items() if value not in (None, False, []))


def require_only(tree: exp.Expr, *names: str) -> None:
    """Go on if a node says nothing but the parts that a rule looks at.

    Raises:
        NoRuleError: It says more.
    """
    require_rule(applies=has_only(tree, *names))
