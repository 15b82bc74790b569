"""Measures how plainly a Scala file reads, by text: decisions, collection calls, names, doc comments, wide lines."""

from __future__ import annotations

import re

from architecture.figures import Figure
from architecture.python_figures import PRIVATE_WORD

DECISION = re.compile(r"\b(?:if|case|while|catch|for)\b|&&|\|\|")
COLLECTION_CALL = re.compile(
    r"\.(?:map|flatMap|filter|filterNot|collect|fold|foldLeft|exists|forall|find|getOrElse|zip|groupBy|partition|toMap"
    r"|toSet|sortBy|reduce|foreach|mapValues|collectFirst|headOption|orElse)\b"
)
METHOD_OF = re.compile(r"\bdef of\b")
WIDEST = 110
NOT_CODE = ("//", "*", "/*", "import", "package")
COMMENT = ("//", "*", "/*")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"""(?:.*?)"""|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
DOC_COMMENT = re.compile(r"/\*\*(.*?)\*/", re.DOTALL)
OBSCURE_COMMENT = re.compile(r"(?:What|Which|Where|Those|That|How|As|Of)\b|.*\b(?:told|asked|held|tells|asks)\b")
# A definition, a parameter or typed pattern, and the names in front of an arrow or in a tuple that is taken apart.
DEFINITION = re.compile(r"\b(?:val|var|def)\s+([a-z]\w*)")
TYPED_NAME = re.compile(r"(?<![.\w])([a-z]\w*)(?=:\s*[\w(=\[])")
ARROW_NAME = re.compile(r"(?<![.\w])([a-z]\w*)(?=\s*(?:<-|=>))")
PATTERN = re.compile(r"\bcase\s+([^\n]*?)(?:\s+if\b|\s*=>)|\(([^()\n]*)\)(?=\s*(?:<-|=>|= ))")
NAME_IN_PATTERN = re.compile(r"(?<![.\w])([a-z]\w*)(?!\w|\s*[.(\[:])")
# Catalyst calls the first operand `left`.
FIELD_WORDS = {"left"}
KEYWORDS = {"case", "if", "null", "true", "false", "for", "this", "type", "else", "yield"}


def scala_figures(text: str) -> dict[str, Figure]:
    """Every figure of one file, by the name of its measure."""
    lines = [line for line in text.splitlines() if is_code(line)]
    comments = [line for line in text.splitlines() if line.strip().startswith(COMMENT)]
    names = bound_names(text)
    private_words = [name for name in names if PRIVATE_WORD.fullmatch(name) and name not in FIELD_WORDS]
    docs = doc_comments(text)
    obscure_docs = list(filter(OBSCURE_COMMENT.match, docs))
    return {
        "decisions": Figure(count_matches(DECISION, lines), len(lines)),
        "collection calls": Figure(count_matches(COLLECTION_CALL, lines), len(lines)),
        "wide lines": Figure(count_wide(lines), len(lines)),
        "methods named of": Figure(count_matches(METHOD_OF, lines), 0, scale=1),
        "private words": Figure(len(private_words), len(names)),
        "obscure comments": Figure(len(obscure_docs), len(docs)),
        "wide comments": Figure(count_wide(comments), len(comments)),
    }


def is_code(line: str) -> bool:
    """Whether a line is neither blank nor a comment, an import or a package clause."""
    code = line.strip()
    return bool(code) and not code.startswith(NOT_CODE)


def count_matches(pattern: re.Pattern[str], lines: list[str]) -> int:
    """The number of times that a pattern occurs in these lines."""
    return sum(len(pattern.findall(line)) for line in lines)


def count_wide(lines: list[str]) -> int:
    """The number of lines that are too wide."""
    return sum(len(line) > WIDEST for line in lines)


def bound_names(text: str) -> list[str]:
    """The names of values, methods and parameters of a file, each time that it binds one."""
    code = COMMENT_OR_TEXT.sub('""', text)
    names = {}
    for pattern in (DEFINITION, TYPED_NAME, ARROW_NAME):
        names.update({match.start(1): match[1] for match in pattern.finditer(code)})
    for match in PATTERN.finditer(code):
        group = 1 if match[1] is not None else 2
        for name in NAME_IN_PATTERN.finditer(match[group]):
            names[match.start(group) + name.start(1)] = name[1]
    return [name for name in names.values() if name not in KEYWORDS]


def doc_comments(text: str) -> list[str]:
    """The texts of the doc comments of a file, each in one line."""
    comments = DOC_COMMENT.findall(text)
    return [re.sub(r"\s*\n\s*\*? ?", " ", comment).strip() for comment in comments]
