"""Values of user-defined statistics: each an Arrow IPC stream of one value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from metastore.contract import read_contract
from metastore.errors import DamagedObject

_LIMITS = read_contract("limits")
MAX_BYTES: int = _LIMITS["extra_bytes"]
_MAX_DECODED: int = _LIMITS["extra_decoded_bytes"]
_VALUE = "value"
_IS_PLAIN = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_temporal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


def encode_value(value: Any) -> bytes:
    """Encode a value for the store."""
    try:
        array = _to_array(value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a {type(value).__name__} is no value that can be kept") from error
    if not _is_storable(array.type):
        raise ValueError(f"a value of type {array.type} is not kept")
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field(_VALUE, array.type)])
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    data = sink.getvalue().to_pybytes()
    if len(data) > MAX_BYTES:
        raise ValueError(f"a value of {len(data)} bytes is more than the {MAX_BYTES} that are kept")
    return bytes(data)


def _to_array(value: Any) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.array([value.as_py()], value.type)
    return pa.array([value])


def decode_value(data: bytes) -> pa.Scalar:
    """Decode a value that was stored."""
    if len(data) > MAX_BYTES:
        raise DamagedObject("extra", f"a value of {len(data)} bytes")
    try:
        batch = _read_batch(data)
        if batch.nbytes > _MAX_DECODED:
            raise DamagedObject("extra", f"a value of {batch.nbytes} bytes when decoded")
        if batch.num_rows != 1:
            raise DamagedObject("extra", f"{batch.num_rows} values where one is expected")
        batch.validate(full=True)
        value = batch.column(0)[0]
        value.as_py()  # names of fields are decoded only now
    except (pa.ArrowException, OSError, StopIteration, ValueError, OverflowError) as error:
        raise DamagedObject("extra", f"it is not a value ({error})") from error
    return value


def _read_batch(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        if len(reader.schema) != 1 or not _is_storable(reader.schema.field(0).type):
            raise DamagedObject("extra", "a value of a type that no writer keeps")
        return reader.read_next_batch()


def _is_storable(kind: pa.DataType) -> bool:
    """Return whether every element takes memory of the stream: nothing small can become large."""
    return pa.types.is_null(kind) or _is_solid(kind)


def _is_solid(kind: pa.DataType) -> bool:
    if isinstance(kind, (pa.ListType, pa.LargeListType)):
        return _is_solid(kind.value_type)
    if pa.types.is_struct(kind):
        types = [field.type for field in kind.fields]
        return bool(types) and all(map(_is_solid, types))
    return any(is_plain(kind) for is_plain in _IS_PLAIN)
