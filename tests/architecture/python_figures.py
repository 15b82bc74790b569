"""Measures how plainly a Python file reads: decisions, complexity, names, docstrings and positional arguments.

A decision is an if, for, while, except, conditional expression, assert or case, a comprehension and each of its ifs,
and each further operand of and/or. Lines of code leave out docstrings, imports, comments and blanks.
"""

from __future__ import annotations

import ast
import re

from architecture.figures import Figure

MOST_COMPLEX = 10
MOST_POSITIONAL = 5
PRIVATE_WORD = re.compile(
    r"found|known|told|asked|given|held|own|one|some|others|alike|left|shown|rest|places?|kept|what|which|why"
    r"|whole|wanted|seen|among|instead|over"
)
OBSCURE_DOCSTRING = re.compile(r"(?:What|Which|Where|Those|That)\b|.*\b(?:told|asked|held)\b")
BLANK_OR_COMMENT = re.compile(r"\s*(?:#.*)?")


def python_figures(text: str) -> dict[str, Figure]:
    """Every figure of one file, by the name of its measure."""
    file = PythonFile(text)
    complex_functions = [complexity for complexity in file.complexities if complexity > MOST_COMPLEX]
    private_words = list(filter(PRIVATE_WORD.fullmatch, file.names))
    obscure_docstrings = list(filter(OBSCURE_DOCSTRING.match, file.docstrings))
    return {
        "decisions": Figure(file.decisions, len(file.code_lines)),
        "complexity": Figure(sum(file.complexities), len(file.complexities), scale=1),
        "complex functions": Figure(len(complex_functions), len(file.complexities)),
        "private words": Figure(len(private_words), len(file.names)),
        "obscure docstrings": Figure(len(obscure_docstrings), len(file.docstrings)),
        "long calls": Figure(file.long_calls, 0, scale=1),
    }


class PythonFile(ast.NodeVisitor):
    """The decisions, lines of code, complexities, names and docstrings of a file."""

    def __init__(self, text: str) -> None:
        self.decisions = 0
        self.complexities: list[int] = []
        self.names: list[str] = []
        self.docstrings: list[str] = []
        self.long_calls = 0
        lines = enumerate(text.splitlines(), start=1)
        self.code_lines = {number for number, line in lines if not BLANK_OR_COMMENT.fullmatch(line)}
        self.visit(ast.parse(text))

    def visit_decision(self, node: ast.AST) -> None:
        """Count one decision, and those inside it."""
        self.decisions += 1
        self.generic_visit(node)

    visit_If = visit_For = visit_While = visit_ExceptHandler = visit_decision  # noqa: N815 the names are ast's
    visit_IfExp = visit_Assert = visit_match_case = visit_decision  # noqa: N815

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Count each operand after the first."""
        self.decisions += len(node.values) - 1
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Count a comprehension and its conditions."""
        self.decisions += 1 + len(node.ifs)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Note a function's complexity; functions inside it count by themselves."""
        inner_functions = len(self.complexities)
        decisions = self.decisions
        self.visit_documented(node)
        nested = sum(self.complexities[inner_functions:]) - len(self.complexities[inner_functions:])
        self.complexities.append(1 + self.decisions - decisions - nested)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_documented(self, node: ast.Module | ast.ClassDef | ast.FunctionDef) -> None:
        """Note the first line of a docstring."""
        docstring = ast.get_docstring(node)
        if docstring:
            self.docstrings.append(docstring.splitlines()[0])
        self.generic_visit(node)

    visit_Module = visit_ClassDef = visit_documented  # noqa: N815

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave the lines of a docstring out of the code."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            self.leave_out_lines(node)
        self.generic_visit(node)

    def leave_out_lines(self, node: ast.stmt) -> None:
        """Take the lines of a statement from the lines of code."""
        self.code_lines.difference_update(range(node.lineno, node.end_lineno + 1))

    visit_Import = visit_ImportFrom = leave_out_lines  # noqa: N815

    def visit_Name(self, node: ast.Name) -> None:
        """Note a variable or field where it is bound."""
        if isinstance(node.ctx, ast.Store):
            self.names.append(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        """Note a parameter."""
        self.names.append(node.arg)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Count a call with six or more positional arguments."""
        if len(node.args) > MOST_POSITIONAL:
            self.long_calls += 1
        self.generic_visit(node)
