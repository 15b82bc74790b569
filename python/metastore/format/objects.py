"""Objects: immutable Parquet files. A reference to an object has the digest of all its bytes."""

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

from metastore.contract import read_contract
from metastore.errors import DamagedObject
from metastore.format import summary_pages
from metastore.format.object_schemas import SCHEMAS, fill_schema
from metastore.format.parquet_footer import (
    MAX_BYTES,
    MAX_FOOTER_BYTES,
    MAX_ROWS,
    decoded_limit,
    footer_length,
    read_footer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.format.parquet_footer import ParquetFooter


KIND_KEY = "metastore.kind"
DIGESTS_KEY = "metastore.digests"
BLOCK_KEY = "metastore.block"
WRITE_KEY = "metastore.write"
"""A footer key with a new uuid: the same rows written twice are two objects, so that one of them can be deleted."""

MAX_OBJECT_BYTES = MAX_BYTES
"""The most bytes that are read of an object at once."""

_PATTERN = r"([a-z]+(?:-[a-z]+)*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet"
_NAME = re.compile(_PATTERN)
_NAME_IN_BYTES = re.compile(_PATTERN.encode())
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA256_BYTES = 32
_DIGEST_BYTES = 16
"""Bytes of a chunk's digest: the start of its SHA-256."""
_LEAST_LENGTH = 12
_LEAST_FOOTER = 8
_MAX_LENGTH: int = read_contract("limits")["object_length"]
_BATCH_ROWS = 16_384


@dataclass(frozen=True, kw_only=True)
class ObjectRef:
    """The name of an object, and the digests that verify its bytes.

    Attributes:
        name: `<kind>-<uuid>.parquet`.
        length: Its size in bytes.
        sha256: Digest of all bytes, in hex.
        rows: Its number of rows.
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
        """The kind of object, as the name says it."""
        return object_kind(self.name)

    def check(self) -> None:
        """Raise an error if no object has this name, sizes and digests, before anything is allocated."""
        object_kind(self.name)
        if not self._has_possible_sizes():
            raise TypeError("an object has sizes that none has")
        if not _SHA256.fullmatch(self.sha256) or not _SHA256.fullmatch(self.footer_sha256):
            raise TypeError("an object has a digest that is none")

    def _has_possible_sizes(self) -> bool:
        if not _LEAST_FOOTER < self.footer_length <= MAX_FOOTER_BYTES:
            return False
        if not _LEAST_LENGTH < self.length <= _MAX_LENGTH:
            return False
        return self.footer_length < self.length and 0 <= self.rows <= MAX_ROWS


def content_name(kind: str, data: bytes) -> str:
    """Name an object by its bytes: its uuid (version 8) is the start of their SHA-256.

    So the name alone verifies an object that no manifest names yet.
    """
    value = int.from_bytes(hashlib.sha256(data).digest()[:16], "big")
    value = value & ~(0xF << 76) | 8 << 76  # version
    value = value & ~(0x3 << 62) | 2 << 62  # variant
    return f"{kind}-{uuid.UUID(int=value)}.parquet"


def object_kind(name: Any) -> str:
    """Return the kind in an object's name."""
    match = isinstance(name, str) and _NAME.fullmatch(name)
    if not match:
        raise DamagedObject(repr(name), "this is no name of an object")
    return match[1]


def find_object_names(data: bytes) -> set[str]:
    """Find all names of objects anywhere in some bytes, in fields that this version knows or not."""
    return {match[0].decode() for match in _NAME_IN_BYTES.finditer(data)}


def mark_unique(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Add a new uuid to the key-values of an object's footer, so that the object gets a name of its own."""
    texts = dict(extra or {})
    texts[WRITE_KEY] = str(uuid.uuid4())
    return texts


def encode_object(
    kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
) -> bytes:
    """Write a table as the bytes of an object."""
    schema = SCHEMAS[kind]
    table = table.select(schema.names).cast(schema)
    if sum(row_groups) != table.num_rows or min(row_groups, default=1) < 1:
        raise ValueError(f"row groups {list(row_groups)} do not add up to {table.num_rows} rows")
    texts = dict(extra or {})
    page_rows = summary_pages.parse_page_rows(texts)
    if page_rows and summary_pages.cuts_pages_by_rows():
        data = _encode_with_pages(kind, table, row_groups, texts, page_rows)
        if data is not None:
            return data
    texts.pop(summary_pages.PAGE_ROWS_KEY, None)
    return _encode_without_pages(kind, table, row_groups, texts)


def _encode_without_pages(kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str]) -> bytes:
    digests = _placeholder_for_digests(table.schema, row_groups)
    texts = {**extra, KIND_KEY: kind, DIGESTS_KEY: digests}
    data = _write_parquet(table, row_groups, texts, _writer_options(table.schema))
    footer = read_footer("object", data)
    return _replace_in_footer(data, {digests: chunk_digests(footer, data)})


def _encode_with_pages(
    kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str], page_rows: int
) -> bytes | None:
    """Write pages of `page_rows` rows with their digests; None if pages would be cut by bytes before."""
    digests = _placeholder_for_digests(table.schema, row_groups)
    pages = _placeholder(summary_pages.PAGES_KEY, summary_pages.page_table_bytes(row_groups, page_rows))
    texts = {**extra, KIND_KEY: kind, DIGESTS_KEY: digests, summary_pages.PAGES_KEY: pages}
    options = _writer_options(table.schema) | summary_pages.page_writer_options(page_rows)
    data = _write_parquet(table, row_groups, texts, options)
    footer = read_footer("object", data)
    page_table = summary_pages.build_page_table("object", footer, data, page_rows)
    if page_table is None:
        return None
    return _replace_in_footer(data, {digests: chunk_digests(footer, data), pages: page_table})


def _write_parquet(
    table: pa.Table, row_groups: Sequence[int], texts: Mapping[str, str], options: Mapping[str, Any]
) -> memoryview:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        offset = 0
        for rows in row_groups:
            writer.write_table(table.slice(offset, rows), row_group_size=rows)
            offset += rows
        writer.add_key_value_metadata(texts)
    return sink.getbuffer()


def make_reference(name: str, data: bytes, rows: int) -> ObjectRef:
    """Make the reference to an object with these bytes."""
    footer = data[-footer_length(name, data) :]
    return ObjectRef(
        name=name,
        length=len(data),
        sha256=_hex_digest(data),
        rows=rows,
        footer_length=len(footer),
        footer_sha256=_hex_digest(footer),
    )


def decode_object(ref: ObjectRef, data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the rows of an object: all columns of its kind, or those that are named.

    Columns that another version left out are null; columns that this version does not know are dropped.
    """
    check_bytes(ref, data)
    footer = read_footer(ref.name, data)
    if footer.rows != ref.rows:
        raise DamagedObject(ref.name, f"{footer.rows} rows where {ref.rows} were named")
    return read_rows(ref.name, footer, data, columns)


def check_bytes(ref: ObjectRef, data: bytes) -> None:
    """Check that bytes are those of an object."""
    if len(data) != ref.length or _hex_digest(data) != ref.sha256:
        raise DamagedObject(ref.name, f"{len(data)} bytes with another digest than the manifest names")


def decode_detail(name: str, sha256: str, data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the rows of an object that a block's list of files names, as `decode_object` does."""
    if _hex_digest(data) != sha256:
        raise DamagedObject(name, "it has another digest than its block names")
    footer = read_footer(name, data)
    return read_rows(name, footer, data, columns)


def read_rows(
    name: str,
    footer: ParquetFooter,
    data: Any,
    columns: Sequence[str] | None = None,
    groups: Sequence[int] | None = None,
) -> pa.Table:
    """Read columns of row groups of an object, all of its kind unless they are named."""
    schema = _select_schema(name, columns)
    metadata = footer.metadata
    if groups is None:
        groups = range(metadata.num_row_groups)
    try:
        rows = sum(metadata.row_group(group).num_rows for group in groups)
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), metadata=metadata, page_checksum_verification=True)
        table = _read_groups(name, file, schema.names, groups, decoded_limit(len(data)))
        return _conform(name, table, rows, schema)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DamagedObject(name, f"it is not a Parquet file of its kind ({e})") from e


def _read_groups(
    name: str, file: pq.ParquetFile, columns: Sequence[str], groups: Sequence[int], most_bytes: int
) -> pa.Table:
    """Read the columns, as far as the file has them."""
    stored = file.schema_arrow
    names = set(stored.names)
    present = [column for column in columns if column in names]
    schema = pa.schema(list(map(stored.field, present)))
    if not groups:
        return schema.empty_table()
    batches = []
    size = 0
    # Threads cost more than they save where there is little to decode.
    batches_read = file.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=present, use_threads=len(groups) > 1)
    for batch in batches_read:
        size += batch.nbytes
        if size > most_bytes:
            raise DamagedObject(name, f"more than {most_bytes} bytes when decoded")
        batches.append(batch)
    return pa.Table.from_batches(batches, schema)


def identify_object(name: str, data: bytes) -> tuple[ObjectRef, dict[str, str]]:
    """Return the reference to an object that no manifest names, and the key-values of its footer."""
    if name != content_name(object_kind(name), data):
        raise DamagedObject(name, "its name is not that of its bytes")
    footer = read_footer(name, data)
    return make_reference(name, data, footer.rows), footer.texts


def chunk_digests(footer: ParquetFooter, data: bytes | memoryview) -> bytes:
    """Join the first 16 bytes of SHA-256 of every column chunk, row group by row group in column order."""
    view = memoryview(data)
    digests = []
    for group in range(footer.metadata.num_row_groups):
        for chunk in footer.chunks(group):
            chunk_bytes = view[chunk.start : chunk.end]
            digests.append(hashlib.sha256(chunk_bytes).digest()[:_DIGEST_BYTES])
    return b"".join(digests)


def verify_chunks(ref: ObjectRef, data: bytes) -> ParquetFooter:
    """Check the digests for partial reads: that of the footer, and those of chunks and pages in the footer."""
    tail = data[len(data) - ref.footer_length :]
    if len(tail) != footer_length(ref.name, data) or _hex_digest(tail) != ref.footer_sha256:
        raise DamagedObject(ref.name, "its footer has another digest than the manifest names")
    footer = read_footer(ref.name, data)
    if footer.texts.get(DIGESTS_KEY) != _to_base64(chunk_digests(footer, data)):
        raise DamagedObject(ref.name, "its footer has other digests than its columns")
    if summary_pages.PAGES_KEY in footer.texts:
        _verify_pages(ref, footer, data)
    return footer


def _verify_pages(ref: ObjectRef, footer: ParquetFooter, data: bytes) -> None:
    page_rows = max(1, summary_pages.parse_page_rows(footer.texts))
    page_table = summary_pages.build_page_table(ref.name, footer, data, page_rows)
    if page_table is None or footer.texts[summary_pages.PAGES_KEY] != _to_base64(page_table):
        raise DamagedObject(ref.name, "its footer has other digests than its pages")


def _replace_in_footer(data: memoryview, values: Mapping[str, bytes]) -> bytes:
    """Replace placeholders in an object's footer by values of the same length.

    Digests are only known after the chunks are written, and by then the footer is written as well.
    """
    body = len(data) - footer_length("object", data)
    footer = bytes(data[body:])
    for placeholder, value in values.items():
        text = _to_base64(value)
        if text:  # an object without rows has none
            footer = _replace_once(footer, placeholder, text)
    return bytes(data[:body]) + footer


def _replace_once(footer: bytes, placeholder: str, text: str) -> bytes:
    count = footer.count(placeholder.encode())
    if len(text) != len(placeholder) or count != 1:
        raise AssertionError(f"the footer has {count} places for {len(text)} bytes of digests")
    return footer.replace(placeholder.encode(), text.encode())


def _placeholder_for_digests(schema: pa.Schema, row_groups: Sequence[int]) -> str:
    leaves = sum(map(len, map(_leaf_types, schema)))
    return _placeholder(DIGESTS_KEY, len(row_groups) * leaves * _DIGEST_BYTES)


def _placeholder(key: str, length: int) -> str:
    """Make a text that occurs nowhere else, with the length of `length` bytes in base64."""
    pattern = bytearray()
    while len(pattern) < length:
        number = len(pattern) // _SHA256_BYTES
        pattern += hashlib.sha256(f"{key} {number}".encode()).digest()
    return _to_base64(bytes(pattern[:length]))


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _hex_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _writer_options(schema: pa.Schema) -> dict[str, Any]:
    encodings: dict[str, str] = {}
    for field in schema:
        encodings.update(_list_encodings(field))
    # Readers choose row groups only by `column` and `rank`; more statistics would double the footer.
    with_statistics = [name for name in ("column", "rank") if name in schema.names]
    return {
        "compression": "zstd",
        "use_dictionary": False,  # it doubles columns of bounds
        "column_encoding": encodings,
        "store_schema": False,
        "write_statistics": with_statistics or False,
        "write_page_checksum": True,
    }


def _list_encodings(field: pa.Field) -> Iterator[tuple[str, str]]:
    """List the path and the encoding of each leaf of a field whose encoding is not the default."""
    for path, kind in _leaf_types(field):
        if pa.types.is_integer(kind):
            yield path, "DELTA_BINARY_PACKED"
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            yield path, "DELTA_BYTE_ARRAY"


def _leaf_types(field: pa.Field) -> list[tuple[str, pa.DataType]]:
    """List the path and type of each leaf of a field."""
    if pa.types.is_map(field.type):
        entry = f"{field.name}.key_value"
        return [(f"{entry}.key", field.type.key_type), (f"{entry}.value", field.type.item_type)]
    if pa.types.is_list(field.type):
        return [(f"{field.name}.list.element", field.type.value_type)]
    return [(field.name, field.type)]


def _select_schema(name: str, columns: Sequence[str] | None) -> pa.Schema:
    schema = SCHEMAS.get(object_kind(name))
    if schema is None:
        raise DamagedObject(name, "this kind of object is not known")
    if columns is None:
        return schema
    return pa.schema([schema.field(name) for name in columns])


def _conform(name: str, table: pa.Table, rows: int, schema: pa.Schema) -> pa.Table:
    """Cast a table to a schema; columns that it lacks are null."""
    if schema.names and table.column_names and table.num_rows != rows:
        raise DamagedObject(name, f"{table.num_rows} rows came out of {rows}")
    arrays = {}
    for field in schema:
        if field.name in table.column_names:
            arrays[field.name] = table.column(field.name).cast(field.type)
    conformed = fill_schema(schema, arrays, rows)
    for field, column in zip(schema, conformed.columns, strict=True):
        if column.null_count and not field.nullable:
            raise pa.ArrowInvalid("a required column has nulls")
    return conformed
