"""Parses the text of a filter into a tree of sqlglot."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parsers.spark import SparkParser

from metastore.errors import InvalidArgument
from metastore.pruning.conditions import require_rule
from metastore.pruning.literals import NOT_UTF8

if TYPE_CHECKING:
    from sqlglot import Token

_EXCERPT_LENGTH = 500
"""The most characters of a filter in an error."""
_SPARK = Dialect.get_or_raise("spark")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_RENAMED_CALLS = ("DATE_TRUNC", "TRUNC", "DATE_ADD", "DATE_SUB")
"""Calls whose units sqlglot would change, although they may mean something else in Spark, such as a column.

They are renamed before they are parsed, because no class can inherit from the compiled parser of `sqlglot[c]`.
"""
_ARGUMENTS_WITHOUT_UNIT = 2
_MARK = "AS_WRITTEN_"
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def parse_condition(text: str) -> exp.Expr:
    """Return the tree of a condition in Spark's SQL.

    Raises:
        InvalidArgument: It is no condition.

    Example:
        >>> parse_condition("a > 1").sql("spark")
        'a > 1'
    """
    if not isinstance(text, str):
        raise InvalidArgument("filter", f"{text!r} is no text", "Write what would follow WHERE, as in 'amount > 100'.")
    try:
        trees = SparkParser(dialect=_SPARK).parse_into(exp.Condition, _tokenize(text), text)
    except RecursionError:
        raise
    except Exception as error:  # unexpected arguments make sqlglot raise other errors than its own
        hint = _describe_position(error)
        raise InvalidArgument("filter", f"{_shorten(text)!r} is no condition of Spark's SQL", hint) from error
    if len(trees) != 1 or isinstance(trees[0], exp.Command | exp.Query | None):
        raise InvalidArgument("filter", f"{_shorten(text)!r} is no condition", "Write what would follow WHERE.")
    return trees[0].transform(_restore_call, copy=False)


def _shorten(text: str) -> str:
    if len(text) <= _EXCERPT_LENGTH:
        return text
    return f"{text[:_EXCERPT_LENGTH]}…"


def _restore_call(node: exp.Expr) -> exp.Expr:
    """Give a renamed call its name again; with a unit as a third argument, it becomes sqlglot's node."""
    if not isinstance(node, exp.Anonymous):
        return node
    name = str(node.this)
    if not name.startswith(_MARK):
        return node
    name = name.removeprefix(_MARK)
    if len(node.expressions) == _ARGUMENTS_WITHOUT_UNIT:
        node.set("this", name)
        return node
    call: exp.Expr = SparkParser.FUNCTIONS[name](node.expressions)
    return call


def _tokenize(text: str) -> list[Token]:
    """Split a text into tokens, with strings as Spark reads them, and with some calls renamed."""
    tokens = _SPARK.tokenize(text)
    for token in tokens:
        if token.token_type == TokenType.STRING:
            token.text = _ESCAPE.sub(_unescape, text[token.start + 1 : token.end])
    for token, following in pairwise(tokens):
        is_call = token.token_type != TokenType.STRING and following.token_type == TokenType.L_PAREN
        if is_call and token.text.upper() in _RENAMED_CALLS:
            token.text = f"{_MARK}{token.text.upper()}"
    return tokens


def _describe_position(error: Exception) -> str:
    """Describe where the parser stopped, if the error has the position."""
    for position in getattr(error, "errors", ()):
        if position.get("line"):
            return f"It stops at {position['highlight']!r} (line {position['line']}, column {position['col']})."
    return ""


def _unescape(escape: re.Match[str]) -> str:
    """Return the character of an escape, as Spark reads it."""
    short, long, octal, character = escape.groups()
    if character is not None:
        return _ESCAPED.get(character, character)
    code = int(octal, 8) if octal else int(short or long, 16)
    if code <= sys.maxunicode:
        return chr(code)
    return NOT_UTF8


def unwrap(tree: exp.Expr) -> exp.Expr:
    """Return the expression within parentheses."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def has_only(tree: exp.Expr, *names: str) -> bool:
    """Return whether a node has only the parts that a rule handles: newer parsers may add parts."""
    parts = {name for name, value in tree.args.items() if value not in (None, False, [])}
    return parts <= set(names)


def require_only(tree: exp.Expr, *names: str) -> None:
    """Raise an error unless a node has only the parts that a rule handles.

    Raises:
        NoRuleError: It has more parts.
    """
    require_rule(applies=has_only(tree, *names))
