"""Manifests at the limits and with values replaced: both readers take and refuse the same; all digests are right.

Both readers are held to this list: `tests/format/test_limits.py` and `tests/pruning/test_limits.py`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from typing import Any

READ, REFUSED = "read", "refused"


def ref_json(kind: str) -> dict[str, Any]:
    return {
        "name": f"{kind}-00000000-0000-8000-8000-000000000000.parquet",
        "length": 1000,
        "sha256": "0" * 64,
        "rows": 1,
        "footer_length": 100,
        "footer_sha256": "0" * 64,
    }


MANIFEST = {
    "format": 1, "requires": [], "sequence": 1, "commit": "c", "previous": None, "written_at": "", "writer": "",
    "table": {"format": "iceberg", "uuid": "u", "location": "l", "name": "n"}, "settings": {"a": 1}, "nodes": [],
    "blocks": [{"id": "b", "computed": "full", "columns": 0, "files": ref_json("files"),
                "summary": [{**ref_json("summary"), "columns": [0]}],
                "zones": [{**ref_json("zones"), "columns": [0]}]}],
    "snapshots": [{"id": "1", "analyzed_at": "", "computed": "full", "exact": True, "columns": 0, "files": 1,
                   "files_total": 1, "rows": 1, "physical_rows": 1, "size_bytes": 1, "live_size_bytes": 1,
                   "table_files": ref_json("table-files"), "summary": None, "sketches": None}],
    "schemas": [[{"key": "1", "path": ["a"], "type": "int", "encoding": "long", "collation": None}]],
}  # fmt: skip


def line(text: bytes) -> bytes:
    """A text as the line of a manifest, with its digest."""
    first = text + b"\n"
    return first + b"sha256:" + hashlib.sha256(first).hexdigest().encode() + b"\n"


def manifest(body: Any) -> bytes:
    return line(json.dumps(body).encode())


ODD: tuple[Any, ...] = (None, True, -1, 2**63, 10**30, 0.5, "", "x" * 10_000, [], {}, [[]], "../x", "\0", 64)


def changed(body: Any, chance: random.Random) -> Any:
    """The document with one value replaced, removed or repeated."""
    copy = json.loads(json.dumps(body))
    paths = []

    def walk(part: Any) -> None:
        keys = part.keys() if isinstance(part, dict) else range(len(part))
        for key in list(keys):
            paths.append((part, key))
            if isinstance(part[key], dict | list):
                walk(part[key])

    walk(copy)
    part, key = chance.choice(paths)
    how = chance.randrange(8)
    if how == 0:
        del part[key]
    elif how == 1 and isinstance(part[key], list):
        part[key] *= chance.choice((2, 1_000))
    else:
        part[key] = chance.choice(ODD)
    return copy


def _manifest(**change: Any) -> bytes:
    return manifest(copy.deepcopy(MANIFEST) | change)


def _block(**change: Any) -> bytes:
    return _manifest(blocks=[MANIFEST["blocks"][0] | change])


def _ref(**change: Any) -> bytes:
    return _block(files=ref_json("files") | change)


def _snapshot(**change: Any) -> bytes:
    return _manifest(snapshots=[MANIFEST["snapshots"][0] | change])


def _ranks(**change: Any) -> bytes:
    return _snapshot(ranks=[{**ref_json("table-ranks"), "columns": [0], "before": [0]} | change])


def _lists(**change: Any) -> bytes:
    return _snapshot(frequencies=[{**ref_json("table-frequencies"), "columns": [0]} | change])


def _text(text: str) -> bytes:
    return line(text.encode())


def _padded(size: int) -> bytes:
    """A manifest of so many bytes."""
    body = _manifest(later="")
    return _manifest(later="x" * (size - len(body)))


def manifests() -> dict[str, tuple[bytes, str]]:
    """By name a manifest, and whether it is read."""
    block, later = MANIFEST["blocks"][0], ref_json("later-kind")
    manifest_text = json.dumps(MANIFEST)
    return {
        "as it is": (_manifest(), READ),
        "16 MiB": (_padded(16 << 20), READ),
        "more than 16 MiB": (_padded((16 << 20) + 1), REFUSED),
        "1,024 blocks": (_manifest(blocks=[block] * 1024), READ),
        "1,025 blocks": (_manifest(blocks=[block] * 1025), REFUSED),
        "fields that may be absent": (
            manifest({k: v for k, v in MANIFEST.items() if k not in ("requires", "settings", "nodes")}),
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
        "an object of another kind": (_block(files=ref_json("summary")), REFUSED),
        "a name that is a path": (_ref(name="../" + ref_json("files")["name"]), REFUSED),
        "a digest that is none": (_ref(sha256="0" * 63), REFUSED),
        "nodes of a later kind": (_manifest(detail_nodes=[later]), READ),
        "nodes that are none": (_manifest(detail_nodes=[later | {"rows": "1"}]), REFUSED),
        "an ordinal that is no column": (_block(summary=[{**ref_json("summary"), "columns": [1]}]), REFUSED),
        "an ordinal that is text": (_block(summary=[{**ref_json("summary"), "columns": ["0"]}]), REFUSED),
        "an ordinal below zero": (_snapshot(distribution=[-1]), REFUSED),
        "a schema that is not there": (_block(columns=1), REFUSED),
        "a schema below zero": (_block(columns=-1), REFUSED),
        "a column without a name": (_manifest(schemas=[[{**MANIFEST["schemas"][0][0], "path": []}]]), REFUSED),
        "a name that is a number": (_manifest(schemas=[[{**MANIFEST["schemas"][0][0], "path": [1]}]]), REFUSED),
        "an unknown encoding": (
            _manifest(schemas=[[{**MANIFEST["schemas"][0][0], "encoding": "x"}]]), REFUSED
        ),
        "a version that is text": (_block(statistics={"a": "1"}), REFUSED),
        "ranks": (_ranks(), READ),
        "ranks before the first": (_ranks(before=[-1]), REFUSED),
        "ranks of other columns": (_ranks(before=[0, 0]), REFUSED),
        "a part": (_lists(part=[0, 2]), READ),
        "a part of nothing": (_lists(part=[0, 0]), REFUSED),
        "a part beyond": (_lists(part=[2, 2]), REFUSED),
        "a part of very many": (_lists(part=[0, 1 << 31]), REFUSED),
        "a constant that JSON does not have": (_text(manifest_text[:-1] + ', "later": NaN}'), REFUSED),
        "text behind": (_text(manifest_text + " {}"), REFUSED),
        "an object nested deeply": (_text('{"a":' * 100_000), REFUSED),
    }  # fmt: skip


def mutated(count: int) -> list[bytes]:
    """Manifests with one value replaced, removed or repeated."""
    return [manifest(changed(MANIFEST, random.Random(number))) for number in range(count)]
