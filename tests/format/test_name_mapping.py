"""Keys of columns in data files without field ids."""

from __future__ import annotations

import json

import pytest

from metastore.format.name_mapping import NameMapping

MAPPING = [
    {"field-id": 1, "names": ["b", "a"]},
    {"names": ["s"], "field-id": 2, "fields": [{"field-id": 3, "names": ["x"]}, {"names": ["lost"]}]},
    {"field-id": 4, "names": ["l"], "fields": [{"field-id": 5, "names": ["element"]}]},
]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("1", '1@[["a","b"]]'),
        ("3", '3@[["s"],["x"]]'),
        ("4", '4@[["l"],{"fields":[[5,["element"],[]]]}]'),
        ("5", '5@[["l"],["element"]]'),
        ("9", "9@[]"),
    ],
)
def test_the_names_on_the_way_to_a_field_are_part_of_its_key(key, expected):
    assert NameMapping(json.dumps(MAPPING)).mapped_key(key) == expected
    assert NameMapping().mapped_key(key) == f"{key}@"
