"""Measures how plainly a Scala file reads, by text: decisions, collection calls, wide lines, methods named `of`."""

from __future__ import annotations

import re

from architecture.figures import Figure

DECISION = re.compile(r"\b(?:if|case|while|catch|for)\b|&&|\|\|")
COLLECTION_CALL = re.compile(
    r"\.(?:map|flatMap|filter|filterNot|collect|fold|foldLeft|exists|forall|find|getOrElse|zip|groupBy|partition|toMap"
    r"|toSet|sortBy|reduce|foreach|mapValues|collectFirst|headOption|orElse)\b"
)
METHOD_OF = re.compile(r"\bdef of\b")
WIDEST = 110
NOT_CODE = ("//", "*", "/*", "import", "package")


def scala_figures(text: str) -> dict[str, Figure]:
    """Every figure of one file, by the name of its measure."""
    lines = [line for line in text.splitlines() if is_code(line)]
    wide_lines = [line for line in lines if len(line) > WIDEST]
    return {
        "decisions": Figure(count_matches(DECISION, lines), len(lines)),
        "collection calls": Figure(count_matches(COLLECTION_CALL, lines), len(lines)),
        "wide lines": Figure(len(wide_lines), len(lines)),
        "methods named of": Figure(count_matches(METHOD_OF, lines), 0, scale=1),
    }


def is_code(line: str) -> bool:
    """Whether a line is neither blank nor a comment, an import or a package clause."""
    code = line.strip()
    return bool(code) and not code.startswith(NOT_CODE)


def count_matches(pattern: re.Pattern[str], lines: list[str]) -> int:
    """The number of times that a pattern occurs in these lines."""
    return sum(len(pattern.findall(line)) for line in lines)
