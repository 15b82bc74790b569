"""Columns of a query that have to be the expressions of the statistics."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from metastore.adapters import expressions
from metastore.errors import AnalyzeFailed
from metastore.format.table_column import Column

FACTS = SimpleNamespace(name="db.t")
LOWER = Column(key="expression:0", path=("lower(name)",), type="string", encoding="binary")


@pytest.fixture
def describe_rows(monkeypatch):
    """Let the shim describe a column of the file, and one expression."""
    descriptions = [{"refused": "no expression"}, {"key": LOWER.key, "columns": ["1"]}]
    monkeypatch.setattr(expressions, "_describe_rows", Mock(return_value=descriptions))


@pytest.mark.usefixtures("describe_rows")
def test_the_last_columns_are_the_expressions():
    assert expressions.require_expressions(None, FACTS, [LOWER]) == [frozenset({"1"})]
    with pytest.raises(AnalyzeFailed):
        expressions.require_expressions(None, FACTS, [LOWER, LOWER])


@pytest.mark.usefixtures("describe_rows")
def test_a_query_without_expressions_has_nothing_to_compare():
    assert expressions.require_expressions(None, FACTS, []) == []
