"""Objects: immutable Parquet files whose every byte is vouched for by whoever names them."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore._format.schemas import SCHEMAS
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

KIND_KEY = "metastore.kind"
DIGESTS_KEY = "metastore.digests"
BLOCK_KEY = "metastore.block"
WRITE_KEY = "metastore.write"
"""A footer key with a fresh uuid: equal rows written twice are two objects, so that one may be deleted for good."""

MAX_ROWS = 1 << 27
MAX_BYTES = 4 << 30
MAX_CHUNKS = 1 << 16

_PATTERN = r"([a-z]+(?:-[a-z]+)*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet"
_NAME = re.compile(_PATTERN)
_NAME_IN_BYTES = re.compile(_PATTERN.encode())
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIGEST_BYTES = 16
_TAIL_BYTES = 8
_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class ObjectRef:
    """The name of an object and all that is needed to trust its bytes.

    Attributes:
        name: `<kind>-<uuid>.parquet`.
        length: Its size in bytes.
        sha256: Digest of all bytes, in hex.
        rows: How many rows it holds.
        footer_length: Bytes from the start of the Parquet footer to the end of the object.
        footer_sha256: Digest of these, in hex.
    """

    name: str
    length: int
    sha256: str
    rows: int
    footer_length: int
    footer_sha256: str

    @property
    def kind(self) -> str:
        """The kind of object that the name says."""
        return kind_of(self.name)

    def to_json(self) -> dict[str, Any]:
        """The reference as it stands in a manifest."""
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, value: Any) -> ObjectRef:
        """The reference of a manifest.

        Raises:
            DamagedObject: If a field is missing, of another type, or the name is not one of ours.
        """
        try:
            ref = cls(*(value[field] for field in cls.__dataclass_fields__))
        except (TypeError, KeyError) as e:
            raise DamagedObject("manifest", f"an object lacks {e}") from e
        counts = (ref.length, ref.rows, ref.footer_length)
        if not all(type(count) is int and count >= 0 for count in counts):
            raise DamagedObject("manifest", "an object has a length that is none")
        for digest in (ref.sha256, ref.footer_sha256):
            if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                raise DamagedObject("manifest", "an object has a digest that is none")
        kind_of(ref.name)
        return ref


def name_of(kind: str, data: bytes) -> str:
    """The name of an object with these bytes: its uuid (version 8) is the start of their SHA-256.

    So a name alone vouches for an object that no manifest names yet.
    """
    value = int.from_bytes(hashlib.sha256(data).digest()[:16], "big")
    value = value & ~(0xF << 76) | 8 << 76  # version
    value = value & ~(0x3 << 62) | 2 << 62  # variant
    return f"{kind}-{uuid.UUID(int=value)}.parquet"


def kind_of(name: Any) -> str:
    """The kind in an object's name.

    Raises:
        DamagedObject: If it is not `<kind>-<uuid>.parquet`: names never lead out of the folder of objects.
    """
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if not match:
        raise DamagedObject(repr(name), "this is no name of an object")
    return match[1]


def names_in(data: bytes) -> set[str]:
    """All names of objects that stand anywhere in some bytes, in fields that this version knows or not.

    Example:
        >>> names_in(b'{"later": "files-00000000-0000-8000-8000-000000000000.parquet", "path": "a/b.parquet"}')
        {'files-00000000-0000-8000-8000-000000000000.parquet'}
    """
    return {match[0].decode() for match in _NAME_IN_BYTES.finditer(data)}


def fresh(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The key-values of an object's footer with the mark that makes the object the only one of its name."""
    return {**(extra or {}), WRITE_KEY: str(uuid.uuid4())}


def encode(kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None) -> bytes:
    """The bytes of an object.

    Args:
        kind: The kind, a key of `SCHEMAS`.
        table: Its rows, with the columns of that schema.
        row_groups: The number of rows of each row group, in order.
        extra: Further key-values for the footer.

    Raises:
        ValueError: If the row groups do not add up to the rows.
    """
    schema = SCHEMAS[kind]
    table = table.select(schema.names).cast(schema)
    if sum(row_groups) != table.num_rows or not all(rows > 0 for rows in row_groups):
        raise ValueError(f"row groups {list(row_groups)} do not add up to {table.num_rows} rows")
    placeholder = _placeholder(len(row_groups) * _leaves(schema) * _DIGEST_BYTES)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, **_writer_options(schema)) as writer:
        offset = 0
        for rows in row_groups:
            writer.write_table(table.slice(offset, rows), row_group_size=rows)
            offset += rows
        writer.add_key_value_metadata({**(extra or {}), KIND_KEY: kind, DIGESTS_KEY: placeholder})
    return _with_digests(sink.getbuffer(), placeholder, len(row_groups))


def reference(name: str, data: bytes, rows: int) -> ObjectRef:
    """The reference to an object with these bytes."""
    footer = data[-_footer_length(name, data) :]
    return ObjectRef(name, len(data), _hex(data), rows, len(footer), _hex(footer))


def decode(ref: ObjectRef, data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of an object, all columns of its kind or those asked for.

    Columns that another version left out are null; columns that this version does not know are dropped.

    Raises:
        DamagedObject: If the bytes are not those that were named, or not an object of that kind.
    """
    if len(data) != ref.length or _hex(data) != ref.sha256:
        raise DamagedObject(ref.name, f"{len(data)} bytes with another digest than the manifest names")
    schema = _schema_of(ref, columns)
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        _check_limits(ref, file.metadata)
        present = [name for name in schema.names if name in file.schema_arrow.names]
        batches = list(_bounded(ref, file, present))
        rows = pa.Table.from_batches(batches, pa.schema([file.schema_arrow.field(n) for n in present]))
        return _conformed(ref, rows, schema)
    except (pa.ArrowException, OSError) as e:
        raise DamagedObject(ref.name, f"it is no Parquet file of its kind ({e})") from e


def unnamed(name: str, data: bytes) -> tuple[ObjectRef, dict[str, str]]:
    """The reference to an object that no manifest names, and the key-values of its footer.

    Raises:
        DamagedObject: If its bytes are not those that its name vouches for.
    """
    if name != name_of(kind_of(name), data):  # before anything is parsed: Arrow aborts on some damaged footers
        raise DamagedObject(name, "its name is not that of its bytes")
    try:
        metadata = pq.read_metadata(pa.BufferReader(data))
        texts = {key.decode(): value.decode() for key, value in (metadata.metadata or {}).items()}
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DamagedObject(name, f"its footer cannot be read ({e})") from e
    return reference(name, data, metadata.num_rows), texts


def chunk_digests(data: bytes | memoryview) -> bytes:
    """The first 16 bytes of SHA-256 of every column chunk, row group by row group in column order."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    view = memoryview(data)
    return b"".join(
        hashlib.sha256(view[start : start + length]).digest()[:_DIGEST_BYTES] for start, length in _chunks(metadata)
    )


def verify_chunks(ref: ObjectRef, data: bytes) -> None:
    """Checks what partial reads rely on: the footer's digest in the reference and the chunks' digests in the footer.

    Raises:
        DamagedObject: If one of them is not that of the bytes.
    """
    footer = data[len(data) - ref.footer_length :]
    if len(footer) != _footer_length(ref.name, data) or _hex(footer) != ref.footer_sha256:
        raise DamagedObject(ref.name, "its footer has another digest than the manifest names")
    texts = pq.read_metadata(pa.BufferReader(data)).metadata or {}
    if texts.get(DIGESTS_KEY.encode()) != base64.b64encode(chunk_digests(data)):
        raise DamagedObject(ref.name, "its footer has other digests than its columns")


def _chunks(metadata: pq.FileMetaData) -> Iterator[tuple[int, int]]:
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for ordinal in range(row_group.num_columns):
            chunk = row_group.column(ordinal)
            starts = [chunk.data_page_offset]
            if chunk.has_dictionary_page:
                starts.append(chunk.dictionary_page_offset)
            yield min(starts), chunk.total_compressed_size


def _with_digests(data: memoryview, placeholder: str, row_groups: int) -> bytes:
    # One pass: the digests are known only when the chunks are written, and then the footer is written too.
    digests = base64.b64encode(chunk_digests(data)).decode()
    body = len(data) - _footer_length("object", data)
    footer = bytes(data[body:])
    found = footer.count(placeholder.encode()) if row_groups else 1
    if len(digests) != len(placeholder) or found != 1:
        raise AssertionError(f"the footer has {found} places for {len(digests)} bytes of digests")
    return bytes(data[:body]) + (footer.replace(placeholder.encode(), digests.encode()) if row_groups else footer)


def _placeholder(length: int) -> str:
    pattern = b"".join(hashlib.sha256(b"metastore.digests %d" % i).digest() for i in range(length // 32 + 1))
    return base64.b64encode(pattern[:length]).decode()


def _footer_length(name: str, data: bytes | memoryview) -> int:
    length = int.from_bytes(data[-_TAIL_BYTES:-4], "little") + _TAIL_BYTES
    if bytes(data[-4:]) != b"PAR1" or length > len(data):
        raise DamagedObject(name, "it does not end as a Parquet file does")
    return length


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _writer_options(schema: pa.Schema) -> dict[str, Any]:
    encodings = {path: encoding for field in schema for path, encoding in _encodings(field)}
    return {
        "compression": "zstd",
        "use_dictionary": False,  # it doubles columns of bounds, and hides bombs from a reader's limits
        "column_encoding": encodings,
        "store_schema": False,
        # Row groups are chosen by `column`; of other columns nothing is looked up, and they double the footer.
        "write_statistics": ["column"] if "column" in schema.names else False,
        "write_page_checksum": True,
    }


def _encodings(field: pa.Field) -> Iterator[tuple[str, str]]:
    for path, kind in _leaf_types(field):
        if pa.types.is_integer(kind):
            yield path, "DELTA_BINARY_PACKED"
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            yield path, "DELTA_BYTE_ARRAY"


def _leaf_types(field: pa.Field) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_map(field.type):
        entry = f"{field.name}.key_value"
        return [(f"{entry}.key", field.type.key_type), (f"{entry}.value", field.type.item_type)]
    if pa.types.is_list(field.type):
        return [(f"{field.name}.list.element", field.type.value_type)]
    return [(field.name, field.type)]


def _leaves(schema: pa.Schema) -> int:
    return sum(len(_leaf_types(field)) for field in schema)


def _schema_of(ref: ObjectRef, columns: Sequence[str] | None) -> pa.Schema:
    schema = SCHEMAS.get(ref.kind)
    if schema is None:
        raise DamagedObject(ref.name, "this kind of object is not known")
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _check_limits(ref: ObjectRef, metadata: pq.FileMetaData) -> None:
    """Refuses before anything is decoded what no writer of ours makes."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    if metadata.num_rows != ref.rows or metadata.num_rows > MAX_ROWS:
        raise DamagedObject(ref.name, f"{metadata.num_rows} rows where {ref.rows} were named")
    if len(groups) * metadata.num_columns > MAX_CHUNKS:
        raise DamagedObject(ref.name, f"{len(groups)} row groups of {metadata.num_columns} columns")
    size = sum(max(0, group.total_byte_size) for group in groups)
    if size > MAX_BYTES:
        raise DamagedObject(ref.name, f"{size} bytes when decoded")
    if any(group.column(i).has_dictionary_page for group in groups for i in range(group.num_columns)):
        raise DamagedObject(ref.name, "it has a dictionary")


def _bounded(ref: ObjectRef, file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    # A footer may lie about sizes: what really comes out is counted batch by batch.
    size = 0
    for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
        size += batch.nbytes
        if size > MAX_BYTES:
            raise DamagedObject(ref.name, f"more than {MAX_BYTES} bytes when decoded")
        yield batch


def _conformed(ref: ObjectRef, table: pa.Table, schema: pa.Schema) -> pa.Table:
    rows = ref.rows
    if schema.names and table.column_names and table.num_rows != rows:
        raise DamagedObject(ref.name, f"{table.num_rows} rows came out of {rows}")
    arrays = [
        table.column(field.name).cast(field.type) if field.name in table.column_names else pa.nulls(rows, field.type)
        for field in schema
    ]
    if any(array.null_count for field, array in zip(schema, arrays, strict=True) if not field.nullable):
        raise pa.ArrowInvalid("a required column has nulls")
    return pa.table(arrays, schema=schema)
