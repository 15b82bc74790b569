"""No Python modules import each other in a circle, not even for types or inside of functions.

Import-linter holds the order of the packages, and `test_scala_packages.py` has the circles of Scala's files.
"""

from __future__ import annotations

import ast
from pathlib import Path

from architecture.circles import find_circles

PYTHON = Path(__file__).resolve().parents[2] / "python"
ALLOWED = {
    "metastore": "metastore.",  # its public names, which it imports at the first use
    "metastore.answers": "metastore.display.",  # an answer shows itself, by imports inside its methods
}
"""Modules, and the beginning of what each may import though that imports it, as in `pyproject.toml`."""


def list_modules() -> dict[str, Path]:
    """List all modules by their dotted names; a package's module is its `__init__.py`."""
    modules = {}
    for path in sorted(PYTHON.rglob("*.py")):
        parts = path.relative_to(PYTHON).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = path
    return modules


def read_imports(code: str) -> set[str]:
    """Read the dotted names that a module imports anywhere: modules, and names with those of their modules."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def find_module(name: str, modules: dict[str, Path]) -> str:
    """Find the module of an imported name: itself, or the module that has it."""
    return name if name in modules else name.rpartition(".")[0]


def list_uses() -> dict[str, set[str]]:
    """List the modules of ours that each module imports, without what it may import in a circle."""
    modules = list_modules()
    uses = {}
    for module, path in modules.items():
        imported = {find_module(name, modules) for name in read_imports(path.read_text("utf-8"))}
        allowed = {other for other in imported if module in ALLOWED and other.startswith(ALLOWED[module])}
        uses[module] = imported.intersection(modules) - allowed
    return uses


def test_modules_stand_in_no_circle():
    uses = list_uses()
    assert uses["metastore.store.table_store"] >= {"metastore.store.stored_objects", "metastore.format.manifest"}
    assert find_circles(uses) == []


def test_all_imports_count():
    code = (
        "import a.b\nif TYPE_CHECKING:\n    from a.c import C\nclass D:\n    def e(self):\n        from a import f, g\n"
    )
    names = read_imports(code)
    assert names == {"a.b", "a.c.C", "a.f", "a.g"}
    modules = dict.fromkeys(["a", "a.b", "a.c", "a.f"], Path())
    assert {find_module(name, modules) for name in names} == {"a.b", "a.c", "a.f", "a"}


def test_circles_are_found():
    uses = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert find_circles(uses) == [{"b", "c"}]
