"""What the texts of partition values in a Delta log mean."""

from __future__ import annotations

import pytest

from metastore.adapters.shim_facts import _Partitions
from metastore.format.table_column import Column, encoding_of


def read(kind: str, text: str | None):
    known, unknown = _Partitions(["p"], [Column('["p"]', ("p",), kind, encoding_of(kind))]).constants({"p": text})
    assert len(known) + len(unknown) == 1
    return known.get('["p"]', "unknown")


@pytest.mark.parametrize(
    ("kind", "text", "stored"),
    [
        ("int", "-7", -7),
        ("int", "x1", "unknown"),
        ("boolean", "true", 1),
        ("decimal(5,2)", "1.50", 150),
        ("decimal(5,2)", "1.505", "unknown"),
        ("date", "0001-01-01", -719162),
        ("double", "-0.0", 0.0),
        ("string", "a/b c%", b"a/b c%"),
        ("string", "", None),
        ("timestamp", "2024-02-29 01:02:03", "unknown"),
        ("timestamp", "nonsense", "unknown"),
        ("timestamp", None, None),
        ("binary", "abc", "unknown"),
    ],
)
def test_texts(kind, text, stored):
    assert read(kind, text) == stored
