"""Objects and manifests that no writer makes, with right digests: what limits are for, and not digests."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.format.object_schemas import FILES, SUMMARY
from metastore.format.objects import ObjectRef, chunk_digests, content_name, encode_object, make_reference

if TYPE_CHECKING:
    import random

PATHS = [f"file:/w/t/{i}.parquet" for i in range(5)]


def samples() -> dict[str, bytes]:
    """Sound objects of every shape, by kind: several row groups, strings, lists, maps, nulls."""
    files = [
        {"file": i, "path": path, "size": 9, "rows": 3, "partition": [("p", str(i))]} for i, path in enumerate(PATHS)
    ]
    rows = [
        {"column": c, "file": f, "rows": 3, "nulls": 1, "lo_long": c, "hi_long": f, "lo_double": 0.5,
         "lo_binary": b"x" * f, "hi_binary": None if f % 2 else b"y" * 40, "percentiles_long": list(range(f)),
         "extra": [("a", b"b")]}
        for c in range(3) for f in range(5)
    ]  # fmt: skip
    return {
        "files": encode_object("files", pa.Table.from_pylist(files, FILES), [5]),
        "summary": encode_object("summary", pa.Table.from_pylist(rows, SUMMARY), [5, 10]),
    }


def signed(data: bytes) -> bytes:
    """The object with digests of its columns that agree with its bytes, where its footer still can be read."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(data))
        before = metadata.metadata[b"metastore.digests"]
        after = base64.b64encode(chunk_digests(data))
    except Exception:  # noqa: BLE001 - a footer that cannot be read is hostile enough
        return data
    return data.replace(before, after) if len(before) == len(after) else data


def reference_of(kind: str, data: bytes, rows: int) -> ObjectRef:
    """A reference with the digests of these bytes, even of those that do not end as a Parquet file does."""
    try:
        return make_reference(content_name(kind, data), data, rows)
    except Exception:  # noqa: BLE001 - see above
        digest = hashlib.sha256(data).hexdigest()
        return ObjectRef(content_name(kind, data), len(data), digest, rows, min(len(data), 64), digest)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few changes: more often in the footer and in page headers, where sizes stand."""
    changed = bytearray(data)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(chance.randint(1, 3)):
        end = len(changed)
        where = chance.choice(
            (chance.randrange(4, footer), chance.randrange(footer, end - 8), chance.randrange(footer, end - 8))
        )
        how = chance.randrange(5)
        if how == 0:
            changed[where] ^= 1 << chance.randrange(8)
        elif how == 1:
            changed[where] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
        elif how == 2:
            changed[where : where + 5] = b"\xff\xff\xff\xff\x0f"
        elif how == 3:
            length = chance.randint(1, 40)
            source = chance.randrange(4, end - 8)
            changed[where : where + length] = changed[source : source + length]
        else:
            changed[where : where + chance.randint(1, 9)] = chance.randbytes(chance.randint(1, 9))
    length = len(changed) - footer - 8
    if length > 0 and bytes(changed[-4:]) == b"PAR1":
        changed[-8:-4] = length.to_bytes(4, "little")
    return signed(bytes(changed)) if chance.random() < 0.7 else bytes(changed)


def resized(data: bytes, before: bytes, after: bytes) -> bytes:
    """The object with other bytes in place of those, signed; what follows moves, and the footer does not know."""
    return signed(data.replace(before, after, 1))


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
    places = []

    def walk(part: Any) -> None:
        keys = part.keys() if isinstance(part, dict) else range(len(part))
        for key in list(keys):
            places.append((part, key))
            if isinstance(part[key], dict | list):
                walk(part[key])

    walk(copy)
    part, key = chance.choice(places)
    how = chance.randrange(8)
    if how == 0:
        del part[key]
    elif how == 1 and isinstance(part[key], list):
        part[key] *= chance.choice((2, 1_000))
    else:
        part[key] = chance.choice(ODD)
    return copy
