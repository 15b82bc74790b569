"""Column names in statements, and the columns that they stand for."""

from __future__ import annotations

import pytest

from metastore.adapters.identifiers import find_column
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.format.table_column import Column

COLUMNS = [
    Column(key=str(key), path=path, type="int", encoding="long")
    for key, path in enumerate((("odd name",), ("a.b",), ("st", "x"), ("st", "y.z"), ("Up",), ("tick`s",)))
]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("odd name", ("odd name",)),
        ("`odd name`", ("odd name",)),
        ("`ODD name`", ("odd name",)),
        ("`a.b`", ("a.b",)),
        ("st.x", ("st", "x")),
        ("`st`.`x`", ("st", "x")),
        ("st.`y.z`", ("st", "y.z")),
        ("`up`", ("Up",)),
        ("tick`s", ("tick`s",)),
        ("`tick``s`", ("tick`s",)),
    ],
)
def test_names_are_quoted_as_in_sql_or_not_at_all(name, path):
    assert find_column(COLUMNS, name, "db.t").path == path


@pytest.mark.parametrize("name", ["st", "`ST`"])
def test_a_struct_has_fields(name):
    with pytest.raises(InvalidArgument, match=r"is a struct\. Name a field of it, such as st\.x\."):
        find_column(COLUMNS, name, "db.t")


@pytest.mark.parametrize("name", ["a.b", "`odd", "", "st.q"])
def test_what_is_no_column(name):
    with pytest.raises(ColumnNotFound):
        find_column(COLUMNS, name, "db.t")
