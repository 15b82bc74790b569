from __future__ import annotations

import hashlib
import json
import random
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import golden
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.documents import from_document, to_document
from metastore.format.manifest import (
    Block,
    Manifest,
    SummaryRef,
    TableIdentity,
    describe_block,
    iterate_objects,
    parse_block_description,
)
from metastore.format.objects import ObjectRef
from metastore.format.table_column import Column

REF = ObjectRef(
    name="files-0d61fbb2-3f3c-4b2a-9c0e-6b8f0c7b0a11.parquet",
    length=100,
    sha256="a" * 64,
    rows=1,
    footer_length=50,
    footer_sha256="b" * 64,
)
COLUMN = Column(key="5", path=("a", "b.c"), type="int", encoding="long")
BLOCK = Block(
    id="b1",
    computed="full",
    columns=(COLUMN,),
    files=REF,
    summary=(SummaryRef(replace(REF, name=REF.name.replace("files", "summary")), (0,)),),
)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return golden.write(tmp_path_factory.mktemp("golden") / "store")


def signed(body):
    line = json.dumps(body).encode() + b"\n"
    return line + b"sha256:" + hashlib.sha256(line).hexdigest().encode() + b"\n"


def body_of(manifest):
    return json.loads(manifest.to_bytes().partition(b"\n")[0])


def test_what_is_written_is_read(manifest):
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


def test_two_lines_and_a_digest(manifest):
    line, last, end = manifest.to_bytes().split(b"\n")
    assert end == b""
    assert last == b"sha256:" + hashlib.sha256(line + b"\n").hexdigest().encode()
    assert Manifest.from_bytes(manifest.to_bytes()).digest == last.decode().removeprefix("sha256:")


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_any_text(name, location, settings):
    manifest = Manifest(table=TableIdentity("iceberg", "u", location, name), blocks=(BLOCK,), settings=settings)
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


def test_schemas_are_written_once(manifest):
    body = body_of(manifest)
    assert len(body["schemas"]) == 1
    assert [block["columns"] for block in body["blocks"]] == [0]
    body["blocks"][0]["columns"] = body["schemas"][0]
    assert Manifest.from_bytes(signed(body)) == manifest


def test_unknown_fields_are_ignored(manifest):
    body = body_of(manifest) | {"later": 1}
    body["blocks"][0]["later"] = body["snapshots"][0]["later"] = body["table"]["later"] = [1]
    body["schemas"][0][0]["later"] = body["blocks"][0]["files"]["later"] = None
    assert Manifest.from_bytes(signed(body)) == manifest


@pytest.mark.parametrize("change", [{"format": 2}, {"requires": ["zones"]}])
def test_newer_formats(manifest, change):
    with pytest.raises(FormatTooNew):
        Manifest.from_bytes(signed(body_of(manifest) | change))


@pytest.mark.parametrize("seed", range(4))
def test_no_flipped_bit_is_ever_read(manifest, seed):
    data, numbers = manifest.to_bytes(), random.Random(seed)
    for _ in range(100):
        damaged = bytearray(data)
        damaged[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
        with pytest.raises(DamagedObject):
            Manifest.from_bytes(bytes(damaged))


def test_torn_manifests(manifest):
    data = manifest.to_bytes()
    for cut in (0, 1, 100, len(data) - 73, len(data) - 72, len(data) - 1):
        with pytest.raises(DamagedObject):
            Manifest.from_bytes(data[:cut])
    with pytest.raises(DamagedObject):
        Manifest.from_bytes(data + b"\n")


@pytest.mark.parametrize(
    "change",
    [
        {"format": None},
        {"format": "1"},
        {"format": 0},
        {"requires": 1},
        {"table": None},
        {"table": {"format": "iceberg"}},
        {"sequence": "1"},
        {"blocks": {}},
        {"blocks": [None]},
        {"blocks": [{"id": "x"}]},
        {"snapshots": [{"id": 1}]},
        {"schemas": [[{"key": 5, "path": ["a"], "type": "int", "encoding": "long"}]]},
        {"schemas": []},
        {"settings": []},
        {"blocks": [None] * 1025},
    ],
)
def test_other_json_is_damaged(manifest, change):
    with pytest.raises(DamagedObject):
        Manifest.from_bytes(signed(body_of(manifest) | change))


@pytest.mark.parametrize("body", [[], None, 1, "x"])
def test_other_documents_are_damaged(body):
    with pytest.raises(DamagedObject):
        Manifest.from_bytes(signed(body))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../x"},
        {"name": None},
        {"length": -1},
        {"length": 1.5},
        {"sha256": "x"},
        {"rows": True},
        {"footer_sha256": 3},
    ],
)
def test_objects_that_are_none(change):
    with pytest.raises((DamagedObject, TypeError)):
        from_document(ObjectRef, to_document(REF) | change)


def test_a_summary_names_only_columns_of_its_block(manifest):
    body = body_of(manifest)
    body["blocks"][0]["summary"][0]["columns"] = [0, 99]
    with pytest.raises(DamagedObject):
        Manifest.from_bytes(signed(body))


def test_a_block_describes_itself_in_its_footer():
    text = describe_block(
        BLOCK.id,
        computed=BLOCK.computed,
        columns=BLOCK.columns,
        objects=BLOCK.summary,
        table=golden.TABLE,
        settings={"a": 1},
    )
    assert parse_block_description(text, REF) == (BLOCK, golden.TABLE, {"a": 1})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id": "x", "columns": 0, "summary": []}'])
def test_footers_that_describe_no_block(text):
    with pytest.raises(DamagedObject):
        parse_block_description(text, REF)


def test_every_object_in_any_part_of_a_manifest_is_named():
    refs = [
        ObjectRef(
            name=f"node-{uuid.UUID(int=i)}.parquet",
            length=1,
            sha256="0" * 64,
            rows=1,
            footer_length=1,
            footer_sha256="0" * 64,
        )
        for i in range(3)
    ]
    manifest = replace(Manifest(table=golden.TABLE), settings={"fan": [refs[0]], "x": (refs[1],)}, nodes=(refs[2],))
    assert list(iterate_objects(manifest)) == refs
