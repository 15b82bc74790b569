"""Makes mutants of Scala sources: one source holds them all, and a number says which of them is on.

An expression `a < b` becomes `(if (Mutant.is(7)) (a <= b) else (a < b))`, so that Scala is compiled once for all.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tree_sitter_scala
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tree_sitter import Node

SWITCH = "_root_.org.metastore.spark.pruning.Mutant.is"
PARSER = Parser(Language(tree_sitter_scala.language()))

OPERATORS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "|": ("&",), "&": ("|",), "+=": ("-=",), "-=": ("+=",),
}  # fmt: skip
PAIRS = (
    *("exists forall", "filter filterNot", "isDefined isEmpty", "nonEmpty isEmpty", "max min", "takeRight dropRight"),
    *("head last", "addExact subtractExact", "isLeft isRight", "take drop", "takeWhile dropWhile", "both either"),
    *("los his", "lo hi", "hasLo hasHi", "loExact hiExact", "setLo setHi", "nulls nans", "below above"),
    *("disjoint covers", "excludedByBounds matchedByBounds", "noRowMatches allRowsMatch", "getLo getHi", "lack within"),
    *("holdsForNull holdsForNaN", "holdsForSome holdsForAll", "leftLo leftHi", "rightLo rightHi"),
    *("loResult hiResult", "never always", "positive negative", "asked left"),
)
SWAPS = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])} | {"nonEmpty": "isEmpty"}
WITHOUT = {"pattern", "parameters", "type", "return_type", "type_arguments", "type_parameters", "extend", "name"}
"""Fields of a node whose parts are no expressions."""
SKIPPED = {"interpolated_string_expression", "import_declaration", "package_clause", "annotation", "type_arguments"}
OPERATIONS = {"infix_expression", "prefix_expression"}
APPLICATIONS = {"generic_function", "call_expression", "field_expression"}
"""What follows an expression: types, arguments, a member's name."""
SHORT = 90
MARK = re.compile(r"/\*(\d+(?:,\d+)*)([<>])\*/")
CONSTANT = re.compile(r"(?<=^  private )val(?= [A-Z]\w*(?:: .*?)? =\s)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change of one expression, known by the text around it so that it outlives changes elsewhere."""

    file: str
    line: int
    source: str
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Its key in the list of equivalent mutants."""
        return self.file, self.source, f"{self.before} -> {self.after}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} -> {self.after}    in: {self.source}"


@dataclass(frozen=True)
class Change:
    """Text that takes the place of some bytes, and the expression to choose it in; of a case its guard alone."""

    start: int
    end: int
    text: str
    inside: tuple[int, int]
    is_guard: bool = False


def changes(code: bytes) -> list[Change]:
    """Returns every change of a source.

    >>> [change.text for change in changes(b"object A { def f = a < b }")]
    ['<=', '>=']
    """
    return [change for node in _expressions(PARSER.parse(code).root_node) for change in _of(node)]


def describe(file: str, code: bytes, change: Change) -> Mutant:
    """Returns what people read of a change, with the expression around it where that is short."""
    line = code.count(b"\n", 0, change.start) + 1
    source = code.splitlines()[line - 1].decode().strip()
    if change.is_guard:
        return Mutant(file, line, source, "case", "no case")
    start, end = change.inside
    if end - start > SHORT:
        start, end = change.start, change.end
    text = (code[start : change.start] + change.text.encode() + code[change.end : end]).decode()
    return Mutant(file, line, source, " ".join(code[start:end].decode().split()), " ".join(text.split()))


def switched(code: bytes, numbered: dict[int, Change]) -> str:
    """Returns the source with all changes in it, each chosen by its number; marks in comments tell where they are."""
    regions: dict[tuple[int, int, bool], list[int]] = {}
    for number, change in numbered.items():
        regions.setdefault((*change.inside, change.is_guard), []).append(number)
    ordered = sorted(regions, key=lambda region: (region[0], -region[1], not region[2]))
    text = _render(code, 0, len(code), ordered=ordered, regions=regions, numbered=numbered)
    return CONSTANT.sub("def", text)  # a value would be computed once, whichever change is chosen


def broken(text: str, positions: Collection[int]) -> set[int]:
    """Returns the changes in which a compiler found errors, by their places in what `switched` returned.

    One error of syntax leads to others further down, in lines without changes.

    Raises:
        ValueError: no error lies in a line with a change.
    """
    marks = [(mark.start(), mark[1], mark[2]) for mark in MARK.finditer(text)]
    mutant_numbers: set[int] = set()
    for position in positions:
        around: list[str] = []
        for _, numbers, side in marks[: bisect.bisect(marks, position, key=lambda mark: mark[0])]:
            around = [*around, numbers] if side == "<" else around[:-1]
        line = text[text.rfind("\n", 0, position) + 1 :].split("\n", 1)[0]
        blamed = around[-1:] or [mark[1] for mark in MARK.finditer(line)]
        mutant_numbers |= {int(number) for numbers in blamed for number in numbers.split(",")}
    if positions and not mutant_numbers:
        raise ValueError(line)
    return mutant_numbers


def _render(
    code: bytes,
    start: int,
    end: int,
    ordered: Sequence[tuple[int, int, bool]],
    regions: dict[tuple[int, int, bool], list[int]],
    numbered: dict[int, Change],
) -> str:
    parts: list[str] = []
    at, character = start, 0
    while character < len(ordered):
        region = ordered[character]
        behind = character + 1
        while behind < len(ordered) and ordered[behind][1] <= region[1] and ordered[behind][0] < max(region[1], 1):
            behind += 1
        parts.append(code[at : region[0]].decode())
        inner = _render(
            code, region[0], region[1], ordered=ordered[character + 1 : behind], regions=regions, numbered=numbered
        )
        parts.append(_choice(code, region, regions[region], numbered, inner))
        at, character = region[1], behind
    return "".join([*parts, code[at:end].decode()])


def _choice(
    code: bytes, region: tuple[int, int, bool], numbers: list[int], numbered: dict[int, Change], inner: str
) -> str:
    all_of_them = ",".join(map(str, numbers))
    start, end, is_guard = region
    if is_guard:
        off = f"!{SWITCH}({numbers[0]})"
        guard = f"{off} && ({inner})" if end > start else f" if {off}"
        return f"/*{all_of_them}<*/{guard}/*{all_of_them}>*/"
    branches = []
    for number in numbers:
        change = numbered[number]
        text = code[start : change.start].decode() + change.text + code[change.end : end].decode()
        branches.append(f"if ({SWITCH}({number})) /*{number}<*/({text})/*{number}>*/ else ")
    return f"/*{all_of_them}<*/({''.join(branches)}({inner}))/*{all_of_them}>*/"


def _expressions(node: Node) -> Iterator[Node]:
    if node.type in SKIPPED or _is_matched(node):
        return
    yield node
    for i, child in enumerate(node.children):
        is_name = node.type in {"assignment_expression", "enumerator"} and i == 0
        if node.field_name_for_child(i) not in WITHOUT and not is_name and not _is_log(child):
            yield from _expressions(child)
        elif node.field_name_for_child(i) == "parameters" or node.type in {"class_parameters", "parameters"}:
            yield from (change for change in _defaults(child))


def _defaults(node: Node) -> Iterator[Node]:
    for i, child in enumerate(node.children):
        if node.field_name_for_child(i) == "default_value":
            yield from _expressions(child)
        elif child.type in {"parameter", "class_parameter"}:
            yield from _defaults(child)


def _is_log(node: Node) -> bool:
    return node.type == "call_expression" and node.text is not None and node.text.startswith(b"log.")


def _of(node: Node) -> Iterator[Change]:
    match node.type:
        case "infix_expression":
            yield from _of_infix(node)
        case "prefix_expression" if _text(node.children[0]) in "!-":
            yield _change(node, node, _whole_text(node.children[1]))
        case "boolean_literal":
            yield _change(node, node, "false" if _text(node) == "true" else "true")
        case "integer_literal" if (literal := re.fullmatch(r"(-?\d+)(L?)", _text(node))) and not _is_limit(node):
            for by in (1, -1):
                yield _change(node, node, f"{int(literal[1]) + by}{literal[2]}")
        case "identifier" if _text(node) in SWAPS and _is_used(node):
            yield _change(node, node, SWAPS[_text(node)])
        case "if_expression" | "guard" | "while_expression":
            yield from _of_condition(node)
        case "case_clause":
            yield from _of_case(node)


def _of_infix(node: Node) -> Iterator[Change]:
    left, operator, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
    assert left is not None
    assert operator is not None
    assert right is not None
    if _text(operator) in {"&&", "||"}:
        yield _change(node, node, _text(left))
        yield _change(node, node, _whole_text(right))
    for other in OPERATORS.get(_text(operator), ()):
        yield _change(node, operator, other)


def _of_condition(node: Node) -> Iterator[Change]:
    """A condition that is no comparison and no connective is turned around: those have changes of their own."""
    condition = node.child_by_field_name("condition")
    while condition is not None and condition.type == "parenthesized_expression":
        condition = condition.children[1]
    if condition is not None and condition.type not in {"infix_expression", "prefix_expression", "if_expression"}:
        yield _change(condition, condition, f"!({_text(condition)})")


def _of_case(node: Node) -> Iterator[Change]:
    """A case that is never taken; of one that takes everything the next would be an error that no text could have."""
    pattern = node.child_by_field_name("pattern")
    guard = next((child for child in node.children if child.type == "guard"), None)
    assert pattern is not None
    if guard is not None:
        condition = guard.child_by_field_name("condition")
        assert condition is not None
        span = (condition.start_byte, condition.end_byte)
        yield Change(*span, "", span, is_guard=True)
    elif pattern.type != "wildcard" and not (pattern.type == "identifier" and _text(pattern)[0].islower()):
        span = (pattern.end_byte, pattern.end_byte)
        yield Change(*span, "", span, is_guard=True)


def _change(node: Node, part: Node, text: str) -> Change:
    """A change of a part, chosen at the smallest expression that may be put into parentheses."""
    around = node
    while (above := around.parent) is not None:
        field = next(
            (above.field_name_for_child(i) for i, child in enumerate(above.children) if child.id == around.id), None
        )
        selects = (above.type, field) in {
            ("field_expression", "field"),
            ("call_expression", "function"),
            ("generic_function", "function"),
        }
        selects = selects and (around.type != "field_expression" or field == "function" or around.id == node.id)
        if not selects and not (_has_placeholder(around) and above.type not in {"arguments", "block", "template_body"}):
            break
        around = above
    end = _end(part) if part.type in OPERATIONS else part.end_byte
    return Change(part.start_byte, end, text, (around.start_byte, _end(around)))


def _end(node: Node) -> int:
    """The end of an expression: the parser takes `a && b.c[D](e)` for `(a && b.c)[D](e)`."""
    while (above := node.parent) is not None:
        is_applied = above.type in APPLICATIONS and above.children[0].id == node.id
        if above.end_byte != node.end_byte and not (is_applied and _begins_with_operation(node)):
            break
        node = above
    return node.end_byte


def _begins_with_operation(node: Node) -> bool:
    while node.type in APPLICATIONS:
        node = node.children[0]
    return node.type in OPERATIONS


def _has_placeholder(node: Node) -> bool:
    """Whether an underscore stands for an argument of a function that begins further out."""
    if node.type == "wildcard":
        return True
    inside = [child for child in node.children if child.type not in {"arguments", "case_block"}]
    direct = [
        child
        for argument_list in node.children
        if argument_list.type == "arguments"
        for child in argument_list.children
    ]
    return any(map(_has_placeholder, inside)) or any(child.type == "wildcard" for child in direct)


def _is_matched(node: Node) -> bool:
    """Whether it defines a constant that patterns compare with: it cannot be made anew each time."""
    if node.type != "val_definition" or (name := node.child_by_field_name("pattern")) is None:
        return False
    return re.search(rf"\bcase {re.escape(_text(name))}\b", _text(_root(node))) is not None


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _is_limit(node: Node) -> bool:
    """Whether a comparison with a number has that one more or less already."""
    above = node.parent
    operator = above.child_by_field_name("operator") if above is not None else None
    return operator is not None and _text(operator) in {"<", "<=", ">", ">="}


def _is_used(node: Node) -> bool:
    """Whether a name is that of a member, or one that has its opposite beside it."""
    above = node.parent
    assert above is not None
    if above.type == "field_expression" and above.child_by_field_name("field") == node:
        return True
    if above.type in {"lambda_expression", "bindings", "assignment_expression"} and above.children[0] == node:
        return False
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", _text(_root(node)), flags=re.DOTALL)
    return re.search(rf"(?<![.\w]){SWAPS[_text(node)]}\b", code) is not None


def _text(node: Node) -> str:
    assert node.text is not None
    return node.text.decode()


def _whole_text(node: Node) -> str:
    """The text of an expression up to its end."""
    code = _root(node).text
    assert code is not None
    return code[node.start_byte : _end(node)].decode()
