"""What either reader takes and refuses, right at the limits: manifests and objects, every digest right.

Both readers are held to this list: `tests/format/test_limits.py` and `tests/pruning/test_limits.py`.
"""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

from format import crafted, hostile
from format.crafted import BINARY, GROUPS, STRUCT, TEXTS, Crafted, field, put

READ, REFUSED = "read", "refused"


def _manifest(**change: Any) -> bytes:
    return hostile.manifest(copy.deepcopy(hostile.MANIFEST) | change)


def _block(**change: Any) -> bytes:
    return _manifest(blocks=[hostile.MANIFEST["blocks"][0] | change])


def _ref(**change: Any) -> bytes:
    return _block(files=hostile.ref_json("files") | change)


def _snapshot(**change: Any) -> bytes:
    return _manifest(snapshots=[hostile.MANIFEST["snapshots"][0] | change])


def _ranks(**change: Any) -> bytes:
    return _snapshot(ranks=[{**hostile.ref_json("table-ranks"), "columns": [0], "before": [0]} | change])


def _lists(**change: Any) -> bytes:
    return _snapshot(frequencies=[{**hostile.ref_json("table-frequencies"), "columns": [0]} | change])


def _text(text: str) -> bytes:
    return hostile.line(text.encode())


def _padded(size: int) -> bytes:
    """A manifest of so many bytes."""
    body = _manifest(later="")
    return _manifest(later="x" * (size - len(body)))


def manifests() -> dict[str, tuple[bytes, str]]:
    """By name a manifest, and whether it is read."""
    block, later = hostile.MANIFEST["blocks"][0], hostile.ref_json("later-kind")
    whole = json.dumps(hostile.MANIFEST)
    return {
        "as it is": (_manifest(), READ),
        "16 MiB": (_padded(16 << 20), READ),
        "more than 16 MiB": (_padded((16 << 20) + 1), REFUSED),
        "1,024 blocks": (_manifest(blocks=[block] * 1024), READ),
        "1,025 blocks": (_manifest(blocks=[block] * 1025), REFUSED),
        "fields that may be absent": (
            hostile.manifest({k: v for k, v in hostile.MANIFEST.items() if k not in ("requires", "settings", "nodes")}),
            READ,
        ),
        "fields that may be null": (_manifest(requires=None, settings=None, nodes=None, detail_nodes=None), READ),
        "unknown fields": (_manifest(later=[1, {"a": 0.5}]), READ),
        "settings that are a list": (_manifest(settings=[]), REFUSED),
        "format 0": (_manifest(format=0), REFUSED),
        "format 2": (_manifest(format=2), REFUSED),
        "format 1.0": (_manifest(format=1.0), REFUSED),
        "a feature": (_manifest(requires=["later"]), REFUSED),
        "a feature that is a number": (_manifest(requires=[1]), REFUSED),
        "a sequence of 64 bits": (_manifest(sequence=1 << 63), REFUSED),
        "a sequence of 63 bits": (_manifest(sequence=(1 << 63) - 1), READ),
        "a fraction as a count": (_snapshot(files=0.5), REFUSED),
        "text as a count": (_snapshot(files="1"), REFUSED),
        "null as a count": (_snapshot(files=None), REFUSED),
        "unknown rows": (_snapshot(rows=None, physical_rows=None, live_size_bytes=None), READ),
        "a number as truth": (_snapshot(exact=1), REFUSED),
        "computed from something else": (_block(computed="later"), REFUSED),
        "an object of the least length": (_ref(length=13, footer_length=9), READ),
        "an object that is too short": (_ref(length=12, footer_length=9), REFUSED),
        "an object that is too long": (_ref(length=(1 << 40) + 1), REFUSED),
        "an object of the greatest length": (_ref(length=1 << 40), READ),
        "a footer that is too short": (_ref(footer_length=8), REFUSED),
        "a footer of 16 MiB": (_ref(length=1 << 30, footer_length=16 << 20), READ),
        "a footer of more": (_ref(length=1 << 30, footer_length=(16 << 20) + 1), REFUSED),
        "a footer of 2^32 bytes more": (_ref(length=1 << 33, footer_length=(1 << 32) + 100), REFUSED),
        "a footer that is all": (_ref(footer_length=1000), REFUSED),
        "2^27 rows": (_ref(rows=1 << 27), READ),
        "more rows": (_ref(rows=(1 << 27) + 1), REFUSED),
        "fewer rows than none": (_ref(rows=-1), REFUSED),
        "an object of another kind": (_block(files=hostile.ref_json("summary")), REFUSED),
        "a name that is a path": (_ref(name="../" + hostile.ref_json("files")["name"]), REFUSED),
        "a digest that is none": (_ref(sha256="0" * 63), REFUSED),
        "nodes of a later kind": (_manifest(detail_nodes=[later]), READ),
        "nodes that are none": (_manifest(detail_nodes=[later | {"rows": "1"}]), REFUSED),
        "an ordinal that is no column": (_block(summary=[{**hostile.ref_json("summary"), "columns": [1]}]), REFUSED),
        "an ordinal that is text": (_block(summary=[{**hostile.ref_json("summary"), "columns": ["0"]}]), REFUSED),
        "an ordinal below zero": (_snapshot(distribution=[-1]), REFUSED),
        "a schema that is not there": (_block(columns=1), REFUSED),
        "a schema below zero": (_block(columns=-1), REFUSED),
        "a column without a name": (_manifest(schemas=[[{**hostile.MANIFEST["schemas"][0][0], "path": []}]]), REFUSED),
        "a name that is a number": (_manifest(schemas=[[{**hostile.MANIFEST["schemas"][0][0], "path": [1]}]]), REFUSED),
        "an unknown encoding": (
            _manifest(schemas=[[{**hostile.MANIFEST["schemas"][0][0], "encoding": "x"}]]), REFUSED
        ),
        "a version that is text": (_block(statistics={"a": "1"}), REFUSED),
        "ranks": (_ranks(), READ),
        "ranks before the first": (_ranks(before=[-1]), REFUSED),
        "ranks of other columns": (_ranks(before=[0, 0]), REFUSED),
        "a part": (_lists(part=[0, 2]), READ),
        "a part of nothing": (_lists(part=[0, 0]), REFUSED),
        "a part beyond": (_lists(part=[2, 2]), REFUSED),
        "a part of very many": (_lists(part=[0, 1 << 31]), REFUSED),
        "a constant that JSON does not have": (_text(whole[:-1] + ', "later": NaN}'), REFUSED),
        "text behind": (_text(whole + " {}"), REFUSED),
        "an object nested deeply": (_text('{"a":' * 100_000), REFUSED),
    }  # fmt: skip


def mutated(count: int) -> list[bytes]:
    """Manifests with one value replaced, removed or repeated."""
    return [hostile.manifest(hostile.changed(hostile.MANIFEST, random.Random(number))) for number in range(count)]


def _made(kind: str = "summary") -> Crafted:
    return Crafted(kind)


def _texts(count: int) -> bytes:
    made = _made()
    texts = field(made.footer, TEXTS)[1]
    more = [[[1, BINARY, b"k%d" % i], [2, BINARY, b""]] for i in range(count - len(texts))]
    put(made.footer, TEXTS, (STRUCT, texts + more))
    return made.data()


def _each_chunk(number: int, change: Any) -> bytes:
    made = _made()
    for _, meta in made.chunks():
        put(meta, number, change(field(meta, number)))
    return made.data()


def _with_dictionary(at: int) -> bytes:
    made = _made()
    for _, meta in made.chunks():
        place = next(i for i, one in enumerate(meta) if one[0] > 11) if any(one[0] > 11 for one in meta) else len(meta)
        meta.insert(place, [11, crafted.I64, at])
    return made.data()


def _other_rows() -> bytes:
    made = _made()
    put(made.footer, 3, field(made.footer, 3) - 1)
    return made.data()


def _empty_group() -> bytes:
    made = _made()
    groups = made.groups
    empty = copy.deepcopy(groups[0])
    put(empty, 3, 0)
    for chunk in field(empty, 1)[1]:
        put(field(chunk, 3), crafted.VALUES, 0)
        put(field(chunk, 3), crafted.LENGTH, 0)
    put(made.footer, GROUPS, (STRUCT, [empty, *groups]))
    return made.data()


def objects() -> dict[str, tuple[bytes, str]]:
    """By name a `summary` of fifteen rows, and whether it is read."""
    return {
        "as it is": (_made().data(), READ),
        "1,024 texts": (_texts(1024), READ),
        "1,025 texts": (_texts(1025), REFUSED),
        "fewer values than rows": (_each_chunk(crafted.VALUES, lambda values: values - 1), REFUSED),
        "much when decoded": (_each_chunk(crafted.DECODED, lambda _: 1 << 40), REFUSED),
        "a dictionary": (_with_dictionary(4), REFUSED),
        "a dictionary at the beginning": (_with_dictionary(0), REFUSED),
        "row groups of other rows": (_other_rows(), REFUSED),
        "an empty row group": (_empty_group(), REFUSED),
        "no end": (_made().data()[:-4] + b"PAR2", REFUSED),
        "a footer that is longer": (_longer(_made().data()), REFUSED),
    }


def _longer(data: bytes) -> bytes:
    return data[:-8] + struct.pack("<i", int.from_bytes(data[-8:-4], "little") + 1) + data[-4:]
