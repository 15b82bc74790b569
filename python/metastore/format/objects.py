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

from metastore.contract import read_contract
from metastore.errors import DamagedObject
from metastore.format import summary_pages
from metastore.format.object_schemas import SCHEMAS
from metastore.format.parquet_footer import (
    MAX_BYTES,
    MAX_FOOTER_BYTES,
    MAX_ROWS,
    decoded_limit,
    footer_length,
    read_footer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from metastore.format.parquet_footer import ParquetFooter


KIND_KEY = "metastore.kind"
DIGESTS_KEY = "metastore.digests"
BLOCK_KEY = "metastore.block"
WRITE_KEY = "metastore.write"
"""A footer key with a fresh uuid: equal rows written twice are two objects, so that one may be deleted for good."""

MAX_OBJECT_BYTES = MAX_BYTES
"""The most bytes that are read of an object at once."""

_PATTERN = r"([a-z]+(?:-[a-z]+)*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet"
_NAME = re.compile(_PATTERN)
_NAME_IN_BYTES = re.compile(_PATTERN.encode())
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIGEST_BYTES = 16
_LEAST_LENGTH, _LEAST_FOOTER = 12, 8
_MAX_LENGTH: int = read_contract("limits")["object_length"]
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
        return object_kind(self.name)

    def check(self) -> None:
        """Refuses what names no object, and sizes that none has, before anything is allocated."""
        if object_kind(self.name) and not _is_possible(self):
            raise TypeError("an object has sizes that none has")
        if not all(_SHA256.fullmatch(digest) for digest in (self.sha256, self.footer_sha256)):
            raise TypeError("an object has a digest that is none")


def _is_possible(ref: ObjectRef) -> bool:
    footer = _LEAST_FOOTER < ref.footer_length <= MAX_FOOTER_BYTES and ref.footer_length < ref.length
    return footer and _LEAST_LENGTH < ref.length <= _MAX_LENGTH and 0 <= ref.rows <= MAX_ROWS


def content_name(kind: str, data: bytes) -> str:
    """The name of an object with these bytes: its uuid (version 8) is the start of their SHA-256.

    So a name alone vouches for an object that no manifest names yet.
    """
    value = int.from_bytes(hashlib.sha256(data).digest()[:16], "big")
    value = value & ~(0xF << 76) | 8 << 76  # version
    value = value & ~(0x3 << 62) | 2 << 62  # variant
    return f"{kind}-{uuid.UUID(int=value)}.parquet"


def object_kind(name: Any) -> str:
    """The kind in an object's name."""
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if not match:
        raise DamagedObject(repr(name), "this is no name of an object")
    return match[1]


def find_object_names(data: bytes) -> set[str]:
    """All names of objects that stand anywhere in some bytes, in fields that this version knows or not."""
    return {match[0].decode() for match in _NAME_IN_BYTES.finditer(data)}


def mark_unique(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The key-values of an object's footer with the mark that makes the object the only one of its name."""
    return {**(extra or {}), WRITE_KEY: str(uuid.uuid4())}


def encode_object(
    kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
) -> bytes:
    """The bytes of an object."""
    schema = SCHEMAS[kind]
    table = table.select(schema.names).cast(schema)
    if sum(row_groups) != table.num_rows or not all(rows > 0 for rows in row_groups):
        raise ValueError(f"row groups {list(row_groups)} do not add up to {table.num_rows} rows")
    texts, page_rows = dict(extra or {}), summary_pages.parse_page_rows(extra or {})
    if not page_rows or not summary_pages.cuts_pages_by_rows():
        texts, page_rows = {key: text for key, text in texts.items() if key != summary_pages.PAGE_ROWS_KEY}, 0
    texts |= {KIND_KEY: kind, DIGESTS_KEY: _placeholder(DIGESTS_KEY, len(row_groups) * _leaves(schema) * _DIGEST_BYTES)}
    if page_rows:
        texts[summary_pages.PAGES_KEY] = _placeholder(
            summary_pages.PAGES_KEY, summary_pages.page_table_bytes(row_groups, page_rows)
        )
    options = _writer_options(schema) | (summary_pages.page_writer_options(page_rows) if page_rows else {})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, **options) as writer:
        offset = 0
        for rows in row_groups:
            writer.write_table(table.slice(offset, rows), row_group_size=rows)
            offset += rows
        writer.add_key_value_metadata(texts)
    data = sink.getbuffer()
    footer = read_footer("object", data)
    found = {DIGESTS_KEY: chunk_digests(footer, data)}
    if page_rows:
        of_pages = summary_pages.build_page_table("object", footer, data, page_rows)
        if of_pages is None:  # so many rows that the writer cuts pages by their bytes
            others = {key: text for key, text in (extra or {}).items() if key != summary_pages.PAGE_ROWS_KEY}
            return encode_object(kind, table, row_groups, others)
        found[summary_pages.PAGES_KEY] = of_pages
    return _filled(data, [(texts[key], base64.b64encode(value).decode()) for key, value in found.items()])


def make_reference(name: str, data: bytes, rows: int) -> ObjectRef:
    """The reference to an object with these bytes."""
    footer = data[-footer_length(name, data) :]
    return ObjectRef(name, len(data), _hex(data), rows, len(footer), _hex(footer))


def decode_object(ref: ObjectRef, data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of an object, all columns of its kind or those asked for.

    Columns that another version left out are null; columns that this version does not know are dropped.
    """
    check_bytes(ref, data)
    footer = read_footer(ref.name, data)
    if footer.rows != ref.rows:
        raise DamagedObject(ref.name, f"{footer.rows} rows where {ref.rows} were named")
    return read_rows(ref.name, footer, data, columns)


def check_bytes(ref: ObjectRef, data: bytes) -> None:
    """Checks that bytes are those of an object."""
    if len(data) != ref.length or _hex(data) != ref.sha256:
        raise DamagedObject(ref.name, f"{len(data)} bytes with another digest than the manifest names")


def decode_detail(name: str, sha256: str, data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of an object that a block's list of files names: as `decode`."""
    if _hex(data) != sha256:
        raise DamagedObject(name, "it has another digest than its block names")
    return read_rows(name, read_footer(name, data), data, columns)


def read_rows(
    name: str,
    footer: ParquetFooter,
    data: Any,
    columns: Sequence[str] | None = None,
    groups: Sequence[int] | None = None,
) -> pa.Table:
    """Columns of row groups of an object, all of its kind unless they are named."""
    schema, metadata = _select_schema(name, columns), footer.metadata
    groups = range(metadata.num_row_groups) if groups is None else groups
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), metadata=metadata, page_checksum_verification=True)
        present = [name for name in schema.names if name in file.schema_arrow.names]
        batches = file.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=present) if groups else ()
        found = pa.schema([file.schema_arrow.field(name) for name in present])
        table = pa.Table.from_batches(list(_limit_decoded_bytes(name, len(data), batches)), found)
        return _conform(name, table, sum(metadata.row_group(group).num_rows for group in groups), schema)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DamagedObject(name, f"it is not a Parquet file of its kind ({e})") from e


def identify_object(name: str, data: bytes) -> tuple[ObjectRef, dict[str, str]]:
    """The reference to an object that no manifest names, and the key-values of its footer."""
    if name != content_name(object_kind(name), data):
        raise DamagedObject(name, "its name is not that of its bytes")
    footer = read_footer(name, data)
    return make_reference(name, data, footer.rows), footer.texts


def chunk_digests(footer: ParquetFooter, data: bytes | memoryview) -> bytes:
    """The first 16 bytes of SHA-256 of every column chunk, row group by row group in column order."""
    view, groups = memoryview(data), range(footer.metadata.num_row_groups)
    chunks = (chunk for group in groups for chunk in footer.chunks(group))
    return b"".join(
        hashlib.sha256(view[chunk.start : chunk.start + chunk.length]).digest()[:_DIGEST_BYTES] for chunk in chunks
    )


def verify_chunks(ref: ObjectRef, data: bytes) -> ParquetFooter:
    """Checks what partial reads rely on: the footer's digest in the reference and the chunks' digests in the footer."""
    tail = data[len(data) - ref.footer_length :]
    if len(tail) != footer_length(ref.name, data) or _hex(tail) != ref.footer_sha256:
        raise DamagedObject(ref.name, "its footer has another digest than the manifest names")
    footer = read_footer(ref.name, data)
    if footer.texts.get(DIGESTS_KEY) != base64.b64encode(chunk_digests(footer, data)).decode():
        raise DamagedObject(ref.name, "its footer has other digests than its columns")
    pages = footer.texts.get(summary_pages.PAGES_KEY)
    if pages is not None:
        page_rows = max(1, summary_pages.parse_page_rows(footer.texts))
        found = summary_pages.build_page_table(ref.name, footer, data, page_rows)
        if found is None or pages != base64.b64encode(found).decode():
            raise DamagedObject(ref.name, "its footer has other digests than its pages")
    return footer


def _filled(data: memoryview, texts: Sequence[tuple[str, str]]) -> bytes:
    # One pass: digests are known only when the chunks are written, and then the footer is written too.
    body = len(data) - footer_length("object", data)
    footer = bytes(data[body:])
    for placeholder, text in texts:
        places = footer.count(placeholder.encode()) if placeholder else 1
        if len(text) != len(placeholder) or places != 1:
            raise AssertionError(f"the footer has {places} places for {len(text)} bytes of digests")
        footer = footer.replace(placeholder.encode(), text.encode()) if placeholder else footer
    return bytes(data[:body]) + footer


def _placeholder(key: str, length: int) -> str:
    pattern = b"".join(hashlib.sha256(f"{key} {i}".encode()).digest() for i in range(length // 32 + 1))
    return base64.b64encode(pattern[:length]).decode()


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _writer_options(schema: pa.Schema) -> dict[str, Any]:
    encodings = {path: encoding for field in schema for path, encoding in _encodings(field)}
    return {
        "compression": "zstd",
        "use_dictionary": False,  # it doubles columns of bounds
        "column_encoding": encodings,
        "store_schema": False,
        # Row groups are chosen by `column` and `rank`; nothing else is looked up, and it would double the footer.
        "write_statistics": [name for name in ("column", "rank") if name in schema.names] or False,
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


def _select_schema(name: str, columns: Sequence[str] | None) -> pa.Schema:
    schema = SCHEMAS.get(object_kind(name))
    if schema is None:
        raise DamagedObject(name, "this kind of object is not known")
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _limit_decoded_bytes(name: str, length: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    size, most = 0, decoded_limit(length)
    for batch in batches:
        size += batch.nbytes
        if size > most:
            raise DamagedObject(name, f"more than {most} bytes when decoded")
        yield batch


def _conform(name: str, table: pa.Table, rows: int, schema: pa.Schema) -> pa.Table:
    if schema.names and table.column_names and table.num_rows != rows:
        raise DamagedObject(name, f"{table.num_rows} rows came out of {rows}")
    arrays = [
        table.column(field.name).cast(field.type) if field.name in table.column_names else pa.nulls(rows, field.type)
        for field in schema
    ]
    if any(array.null_count for field, array in zip(schema, arrays, strict=True) if not field.nullable):
        raise pa.ArrowInvalid("a required column has nulls")
    return pa.table(arrays, schema=schema)
