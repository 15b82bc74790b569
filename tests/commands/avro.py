"""A reader of small Avro files: Iceberg lists its data files in them, and asking Spark takes longer than a command."""

from __future__ import annotations

import io
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_META = {"type": "map", "values": "bytes"}


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file, as its own schema names their fields."""
    data = io.BytesIO(path.read_bytes())
    assert data.read(len(MAGIC)) == MAGIC, path
    header = _value(data, _META, {})
    schema, codec = json.loads(header["avro.schema"]), header.get("avro.codec", b"null")
    data.read(SYNC_BYTES)
    records: list[dict[str, Any]] = []
    while data.tell() < len(data.getbuffer()):
        count, size = _long(data), _long(data)
        block = io.BytesIO(_decompress(data.read(size), codec))
        named: dict[str, Any] = {}
        records.extend(_value(block, schema, named) for _ in range(count))
        data.read(SYNC_BYTES)
    return records


def _decompress(block: bytes, codec: bytes) -> bytes:
    if codec == b"deflate":
        return zlib.decompress(block, -zlib.MAX_WBITS)
    assert codec == b"null", codec
    return block


def _long(data: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = data.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7


def _bytes(data: io.BytesIO) -> bytes:
    return data.read(_long(data))


_PRIMITIVES = {
    "null": lambda _: None,
    "boolean": lambda data: data.read(1) == b"\x01",
    "int": _long,
    "long": _long,
    "float": lambda data: struct.unpack("<f", data.read(4))[0],
    "double": lambda data: struct.unpack("<d", data.read(8))[0],
    "bytes": _bytes,
    "string": lambda data: _bytes(data).decode("utf-8"),
}


def _value(data: io.BytesIO, schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return _value(data, schema[_long(data)], named)
    if isinstance(schema, str):
        return _PRIMITIVES[schema](data) if schema in _PRIMITIVES else _value(data, named[schema], named)
    if "name" in schema:
        named[schema["name"]] = schema
    kind = schema["type"]
    if kind == "record":
        return {field["name"]: _value(data, field["type"], named) for field in schema["fields"]}
    if kind == "fixed":
        return data.read(schema["size"])
    if kind == "array":
        return [_value(data, schema["items"], named) for _ in _blocks(data)]
    if kind == "map":
        return {_bytes(data).decode("utf-8"): _value(data, schema["values"], named) for _ in _blocks(data)}
    return _value(data, kind, named)


def _blocks(data: io.BytesIO) -> Any:
    """As many turns as an array or a map has items."""
    while count := _long(data):
        if count < 0:
            _long(data)  # the bytes of the block
        yield from range(abs(count))
