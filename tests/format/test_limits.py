"""The Python reader at the limits that both readers have."""

from __future__ import annotations

import json
import random

import pytest

from format import limits
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.documents import from_document
from metastore.format.manifest import Manifest, parse_block_description
from metastore.format.objects import ObjectRef

MANIFESTS = limits.manifests()
FILES = from_document(ObjectRef, limits.ref_json("files"))


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests(name):
    data, expected = MANIFESTS[name]
    try:
        Manifest.from_bytes(data)
        outcome = limits.READ
    except (DamagedObject, FormatTooNew):
        outcome = limits.REFUSED
    assert outcome == expected


def test_mutated_manifests():
    assert Manifest.from_bytes(limits.manifest(limits.MANIFEST)).blocks
    nesting = 0
    for number in range(3_000):
        data = limits.manifest(limits.changed(limits.MANIFEST, random.Random(number)))
        try:
            Manifest.from_bytes(data)
            nesting += 1
        except (DamagedObject, FormatTooNew):
            continue
    assert 0 < nesting < 2_000


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 100_000, "9" * 100_000, '"\\ud800"', "NaN", "\0", ""])
def test_json_that_is_none(text):
    with pytest.raises(DamagedObject):
        Manifest.from_bytes(limits.line(text.encode()))
    with pytest.raises(DamagedObject):
        parse_block_description(text, FILES)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "files-../../../../../../../x.parquet", "/etc/passwd", "files", ""]
)
@pytest.mark.parametrize("where", ["blocks", "snapshots"])
def test_names_never_form_paths(name, where):
    body = json.loads(json.dumps(limits.MANIFEST))
    body[where][0]["files" if where == "blocks" else "table_files"]["name"] = name
    with pytest.raises(DamagedObject, match="no name of an object"):
        Manifest.from_bytes(limits.manifest(body))
