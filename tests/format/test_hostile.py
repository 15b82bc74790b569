"""Hostile objects and manifests with right digests: an error that says so, never a crash, a stall or a full memory."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from format import crafted, hostile
from format.crafted import varint
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format import compact_thrift, objects
from metastore.format.manifest import Manifest, parse_block_description
from metastore.format.object_schemas import SKETCHES
from metastore.format.objects import content_name, decode_object, encode_object, identify_object, make_reference
from metastore.format.parquet_footer import MAX_PAGE_BYTES, read_footer

KEPT = Path(__file__).parents[1] / "cases" / "hostile"
BASE = hostile.samples()
ROWS = {kind: read_footer(kind, data).rows for kind, data in BASE.items()}


def in_a_process(work, seconds=60, mebibytes=3072):
    """Runs work in a process that may die, with little memory and time; what it says on its last line comes back."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        signal.alarm(seconds)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (mebibytes << 20),) * 2)
        try:
            with os.fdopen(writing, "w", 1) as out:
                work(lambda text: print(text, file=out, flush=True))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as read:
        said = read.read().splitlines()
    _, status = os.waitpid(process, 0)
    return status, said


def outcome(kind, data):
    """What reading it comes to: rows, or the only error that there may be."""
    try:
        return decode_object(hostile.reference_of(kind, data, ROWS[kind]), data).num_rows
    except DamagedObject:
        return "damaged"


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
@pytest.mark.parametrize("seed", range(4))
def test_mutated_objects(seed):
    def work(say):
        for number in range(seed * 1_000, seed * 1_000 + 1_000):
            chance = random.Random(number)
            kind = chance.choice(sorted(BASE))
            say(number)
            outcome(kind, hostile.mutated(BASE[kind], chance))
        say("survived")

    status, said = in_a_process(work)
    assert (status, said[-1]) == (0, "survived")


@pytest.mark.skipif(sys.platform != "linux", reason="as above")
@pytest.mark.parametrize("path", sorted(KEPT.glob("*.parquet")), ids=lambda path: path.stem)
def test_kept_objects(path):
    kind = path.name.partition(".")[0]
    status, said = in_a_process(lambda say: say(outcome(kind, path.read_bytes())), seconds=10, mebibytes=1024)
    assert (status, said) == (0, ["damaged"])


CRAFTED = crafted.objects()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="as above")
@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_objects(name):
    kind = name.partition(".")[0]
    data = CRAFTED[name]()
    status, said = in_a_process(lambda say: say(outcome(kind, data)), seconds=20)
    assert (status, said) == (0, ["damaged"])


def test_most_mutations_are_noticed_and_some_are_harmless():
    found = set()
    for number in range(60):
        chance = random.Random(number)
        kind = chance.choice(sorted(BASE))
        found.add(outcome(kind, hostile.mutated(BASE[kind], chance)))
    assert "damaged" in found
    assert found & set(ROWS.values())


def test_few_rows_of_large_values_are_decoded_at_once():
    table = pa.table({"column": [0] * 40, "file": range(40), "theta": [b"x" * (4 << 20)] * 40})
    table = table.append_column("bloom", [[None] * 40]).append_column("registers", [[None] * 40]).cast(SKETCHES)
    data = encode_object("sketches", table, [40])
    ref = make_reference(content_name("sketches", data), data, 40)
    groups = read_footer(ref.name, data).groups
    assert objects.choose_batch_rows(ref.name, groups, data, ["theta"]) < 128
    assert objects.choose_batch_rows(ref.name, groups, data, ["column"]) == objects._BATCH_ROWS


def struct(*fields):
    """Thrift's compact protocol: (id, type, bytes)."""
    data, last = b"", 0
    for field, kind, content in fields:
        data, last = data + bytes([(field - last) << 4 | kind]) + content, field
    return data + b"\0"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",
        b"\x1c" * 100_000,
        struct((1, 9, b"\xfc" + varint(1 << 31))),
        struct((1, 8, varint(1 << 40))),
        struct((1, 5, b"\xff" * 30)),
        struct((1, 9, b"\x19" * 1_000)),
        struct((1, 13, b"")),
    ],
    ids=range(8),
)
def test_thrift_that_lies_is_refused_at_once(data):
    began = time.monotonic()
    with pytest.raises(compact_thrift.MalformedThriftError):
        compact_thrift.read_struct(data)
    assert time.monotonic() - began < 1


def with_page_sizes(data, size):
    """The object with another uncompressed size in the header of its first page."""
    header, end = compact_thrift.read_struct(data, 4)
    old, new = (b"\x15" + varint(value << 1) for value in (header[2], size))
    return hostile.resized(data, data[4:end], data[4:end].replace(old, new, 1))


def test_pages_that_would_fill_the_memory_are_refused():
    data = with_page_sizes(BASE["summary"], MAX_PAGE_BYTES + 1)
    ref = hostile.reference_of("summary", data, ROWS["summary"])
    with pytest.raises(DamagedObject, match=r"a page of 268435457 bytes|lies outside"):
        decode_object(ref, data)


def test_mutated_manifests():
    assert Manifest.from_bytes(hostile.manifest(hostile.MANIFEST)).blocks
    whole = 0
    for number in range(3_000):
        data = hostile.manifest(hostile.changed(hostile.MANIFEST, random.Random(number)))
        try:
            Manifest.from_bytes(data)
            whole += 1
        except (DamagedObject, FormatTooNew):
            continue
    assert 0 < whole < 2_000


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 100_000, "9" * 100_000, '"\\ud800"', "NaN", "\0", ""])
def test_json_that_is_none(text):
    with pytest.raises(DamagedObject):
        Manifest.from_bytes(hostile.line(text.encode()))
    with pytest.raises(DamagedObject):
        parse_block_description(text, hostile.reference_of("files", BASE["files"], 5))


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "files-../../../../../../../x.parquet", "/etc/passwd", "files", ""]
)
@pytest.mark.parametrize("where", ["blocks", "snapshots"])
def test_names_never_form_paths(name, where):
    body = json.loads(json.dumps(hostile.MANIFEST))
    body[where][0]["files" if where == "blocks" else "table_files"]["name"] = name
    with pytest.raises(DamagedObject, match="no name of an object"):
        Manifest.from_bytes(hostile.manifest(body))


def test_an_unnamed_object_with_any_footer_is_damaged():
    for number in range(300):
        data = hostile.mutated(BASE["files"], random.Random(number))
        try:
            identify_object(content_name("files", data), data)
        except DamagedObject:
            continue
