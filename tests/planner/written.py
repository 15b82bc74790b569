"""Statistics written by hand, through the real format: what they say is up to the test, right or wrong."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metastore.format.bloom_filter import BloomBuilder, bloom_hashes
from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef, TableIdentity
from metastore.format.object_layout import lay_out_value_lists
from metastore.format.object_schemas import FILES, FREQUENCIES, SKETCHES, SUMMARY, TABLE_FILES, TABLE_SUMMARY
from metastore.format.objects import ObjectRef, content_name, encode_object, make_reference
from metastore.format.table_column import Column, encoding_of
from metastore.format.value_rendering import cut_lower, cut_upper, decimal_to_bytes
from metastore.store import Store
from metastore.store.location import default_store_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPARK_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
}

SCHEMAS = {
    "files": FILES,
    "summary": SUMMARY,
    "sketches": SKETCHES,
    "table-files": TABLE_FILES,
    "table-summary": TABLE_SUMMARY,
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Values:
    """A list of some values, stored, with their frequencies; values of which there is a filter, if there is one."""

    kind: str
    listed: list[tuple[Any, int]]
    filtered: list[Any] | None = None


@dataclass
class DataFile:
    """A data file of a table and the statistics of its columns, with single values of some of them."""

    path: str
    size: int
    rows: int
    modified: int | None = None
    columns: dict[Column, Row] = field(default_factory=dict)
    values: dict[Column, Values] = field(default_factory=dict)


@dataclass
class Written:
    """The statistics of one table, to be changed by a test before they are written.

    Example:
        >>> written = Written(TableIdentity("iceberg", "u", "/x/t", "t"), [])
        >>> written.folder
        PosixPath('/x/t/_metastore')
    """

    identity: TableIdentity
    files: list[DataFile]
    sequence: int = 1

    @property
    def folder(self) -> Path:
        return Path(self.identity.location.removeprefix("file:")) / "_metastore"

    def change(self, column: str, change: Callable[[int, Row], Row]) -> Written:
        """The same with other numbers for one column: `change` gets the file's position and its row."""
        files = [
            replace(f, columns={c: change(i, r) if c.name == column else r for c, r in f.columns.items()})
            for i, f in enumerate(self.files)
        ]
        return replace(self, files=files)

    def write(self, snapshot: str | None = None) -> Written:
        """Writes a manifest with one block a schema; with `snapshot`, a table level too."""
        (self.folder / "log").mkdir(parents=True, exist_ok=True)
        (self.folder / "objects").mkdir(exist_ok=True)
        schemas: dict[tuple[Column, ...], list[DataFile]] = {}
        for file in self.files:
            schemas.setdefault(tuple(file.columns), []).append(file)
        blocks = tuple(self._block(columns, files) for columns, files in schemas.items())
        snapshots = (self._snapshot(snapshot),) if snapshot else ()
        manifest = Manifest(
            table=self.identity, blocks=blocks, snapshots=snapshots, sequence=self.sequence, commit=str(uuid.uuid4())
        )
        name = f"{self.sequence:020d}.json"
        (self.folder / "log" / name).write_bytes(manifest.to_bytes())
        return replace(self, sequence=self.sequence + 1)

    def _block(self, columns: tuple[Column, ...], files: list[DataFile]) -> Block:
        details = self._details(columns, files) if any(f.values for f in files) else {}
        listed = [
            {"file": i, "path": f.path, "size": f.size, "modified": f.modified, "rows": f.rows, **_named(details, i)}
            for i, f in enumerate(files)
        ]
        rows = [
            {"column": c, "file": i, **f.columns[column], **_kind(f.values.get(column))}
            for c, column in enumerate(columns)
            for i, f in enumerate(files)
        ]
        summary = (SummaryRef(self._put("summary", rows), tuple(range(len(columns)))),) if rows else ()
        return Block(
            id=str(uuid.uuid4()), computed="full", columns=columns, files=self._put("files", listed), summary=summary
        )

    def _details(self, columns: tuple[Column, ...], files: list[DataFile]) -> dict[str, ObjectRef]:
        lists, sketches = [], []
        for c, column in enumerate(columns):
            for i, file in enumerate(files):
                of = {"column": c, "file": i}
                values = file.values.get(column, Values("none", []))
                ranked = sorted(values.listed, key=lambda entry: -entry[1])
                lists += [{**of, f"value_{column.encoding}": v, "frequency": n} for v, n in ranked]
                sketches += [{**of, "bloom": _bloom(column, values.filtered)}]
        rows, groups = lay_out_value_lists(pa.Table.from_pylist(lists, FREQUENCIES))
        detail_refs = {"sketches": self._put("sketches", sketches)}
        return {**detail_refs, "frequencies": self._table("frequencies", rows, groups)}

    def _snapshot(self, snapshot: str) -> Snapshot:
        columns = tuple(dict.fromkeys(c for f in self.files for c in f.columns))
        listed = [{"path": f.path, "size": f.size, "rows": f.rows} for f in self.files]
        distinct = self.distinct
        rows = [
            {"column": i, "files": len(self.files), "distinct": distinct.get(c.name), "rows": self.rows}
            for i, c in enumerate(columns)
        ]
        size = sum(f.size for f in self.files)
        return Snapshot(
            id=snapshot,
            analyzed_at="2026-01-01T00:00:00Z",
            computed="full",
            exact=True,
            columns=columns,
            files=len(self.files),
            files_total=len(self.files),
            rows=self.rows,
            physical_rows=self.rows,
            size_bytes=size,
            live_size_bytes=size,
            table_files=self._put("table-files", listed),
            summary=self._put("table-summary", rows),
        )

    @property
    def rows(self) -> int:
        return sum(f.rows for f in self.files)

    @property
    def distinct(self) -> dict[str, int]:
        """Distinct values of each column in the whole table, where its files are local."""
        values: dict[str, set[Any]] = {}
        for file in self.files:
            for leaf in leaves(pq.read_table(_local(self.identity, file.path))):
                values.setdefault(".".join(leaf.path), set()).update(leaf.values.drop_null().unique().to_pylist())
        return {name: len(distinct_values) for name, distinct_values in values.items()}

    def _put(self, kind: str, rows: list[Row]) -> ObjectRef:
        return self._table(kind, pa.Table.from_pylist(rows, SCHEMAS[kind]), [len(rows)])

    def _table(self, kind: str, rows: pa.Table, groups: list[int]) -> ObjectRef:
        data = encode_object(kind, rows, groups)
        name = content_name(kind, data)
        (self.folder / "objects" / name).write_bytes(data)
        return make_reference(name, data, rows.num_rows)


def _named(details: dict[str, ObjectRef], file: int) -> Row:
    """How the row of a data file names its details."""
    fields = ("name", "length", "sha256", "footer_length", "footer_sha256")
    named = {f"{kind}_{field}": getattr(ref, field) for kind, ref in details.items() for field in fields}
    return {**named, **{f"{kind}_file": file for kind in details}}


def _kind(values: Values | None) -> Row:
    return {} if values is None else {"frequencies": values.kind}


def _bloom(column: Column, values: list[Any] | None) -> bytes | None:
    if values is None:
        return None
    kind = {"long": pa.int64(), "double": pa.float64(), "binary": pa.binary()}[str(column.encoding)]
    builder = BloomBuilder(len(values))
    builder.add(bloom_hashes(pa.array(values, kind)))
    return builder.finish(len(values))


@dataclass(frozen=True)
class Leaf:
    """A leaf column of one data file: its names, its Iceberg field id if any, its values."""

    path: tuple[str, ...]
    field_id: str | None
    values: pa.ChunkedArray


def leaves(table: pa.Table) -> Iterator[Leaf]:
    """The leaves of a table below structs."""
    for column in table.schema:
        yield from _leaves((column.name,), column, table.column(column.name))


def _leaves(path: tuple[str, ...], column: pa.Field, values: pa.ChunkedArray) -> Iterator[Leaf]:
    if pa.types.is_struct(column.type):
        for child in column.type:
            yield from _leaves((*path, child.name), child, pc.struct_field(values, [child.name]))
        return
    field_id = (column.metadata or {}).get(b"PARQUET:field_id")
    yield Leaf(path, field_id.decode() if field_id else None, values)


def describe_iceberg_table(spark, name: str) -> Written:
    """Describe an Iceberg table with true statistics of all columns of its Parquet files."""
    table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    files = spark.sql(f"SELECT file_path, file_size_in_bytes, record_count FROM {name}.data_files").collect()
    identity = TableIdentity("iceberg", table.uuid().toString(), table.location(), name)
    return Written(identity, [described(identity, DataFile(*file)) for file in sorted(files)])


def read_store(location: str) -> Written:
    """Read the statistics that ANALYZE wrote of a table's files, as the next version."""
    store = Store.open(default_store_uri(location))
    manifest = store.read()
    assert manifest is not None
    files = []
    for block in manifest.blocks:
        listed = {row["file"]: row for row in store.get(block.files).to_pylist()}
        columns: dict[int, dict[Column, Row]] = {file: {} for file in listed}
        for ref in block.summary:
            for row in store.get(ref.object).to_pylist():
                ordinal, file = row.pop("column"), row.pop("file")
                columns[file][block.columns[ordinal]] = row
        files += [
            DataFile(path=row["path"], size=row["size"], rows=row["rows"], modified=None, columns=columns[f])
            for f, row in listed.items()
        ]
    return Written(manifest.table, files, manifest.sequence + 1)


def describe_parquet_folder(root: Path) -> Written:
    """Describe a folder of Parquet files, as Spark names it, with true statistics of all columns."""
    import hashlib  # noqa: PLC0415

    location = f"file:{root}"
    identity = TableIdentity("parquet", hashlib.sha256(location.encode()).hexdigest(), location, str(root))
    files = []
    for path in sorted(p for p in root.rglob("*.parquet") if "_metastore" not in p.parts):
        stat, rows = path.stat(), pq.read_metadata(path).num_rows
        files.append(
            DataFile(path=str(path.relative_to(root)), size=stat.st_size, rows=rows, modified=int(stat.st_mtime * 1000))
        )
    return Written(identity, [described(identity, f) for f in files])


def described(identity: TableIdentity, file: DataFile) -> DataFile:
    """The file with its columns' statistics, read from its rows."""
    table = pq.ParquetFile(_local(identity, file.path)).read()
    columns = {_column(identity, leaf): _statistics(leaf.values) for leaf in leaves(table) if _type(leaf)}
    return replace(file, columns=columns)


def _local(identity: TableIdentity, path: str) -> str:
    root = identity.location.removeprefix("file:")
    return path.removeprefix("file:") if identity.format == "iceberg" else f"{root}/{path}"


def _type(leaf: Leaf) -> str | None:
    kind = leaf.values.type
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.tz:
        return "timestamp"
    return SPARK_TYPES.get(kind)


def _column(identity: TableIdentity, leaf: Leaf) -> Column:
    kind = _type(leaf)
    names = json.dumps(list(leaf.path), ensure_ascii=False, separators=(",", ":"))
    return Column(
        key=leaf.field_id if identity.format == "iceberg" else names,
        path=leaf.path,
        type=kind,
        encoding=encoding_of(kind),
    )


def _statistics(values: pa.ChunkedArray) -> Row:
    nulls = values.null_count
    present = values.drop_null()
    nans = pc.sum(pc.is_nan(present)).as_py() or 0 if pa.types.is_floating(values.type) else 0
    row = {"rows": len(values), "nulls": nulls, "nans": nans, "distinct": pc.count_distinct(present).as_py()}
    comparable = [v for v in (stored(v) for v in present) if v == v]  # noqa: PLR0124 - NaN is never a bound
    if comparable:
        row |= bounds(min(comparable, key=_order(values.type)), max(comparable, key=_order(values.type)))
    if isinstance(comparable[:1] and comparable[0], bytes) and not pa.types.is_decimal(values.type):
        row |= {"avg_len": sum(map(len, comparable)) / len(comparable), "max_len": max(map(len, comparable))}
    return {**row, "distinct_error": 0.0}


def _order(kind: pa.DataType) -> Callable[[Any], Any]:
    is_wide = pa.types.is_decimal(kind) and kind.precision > 18
    return lambda value: int.from_bytes(value, "big", signed=True) if is_wide else value


def bounds(lo: Any, hi: Any) -> Row:
    """The bounds of a column as they are stored, cut where they are long; both in the form of the column's encoding."""
    if not isinstance(lo, bytes):
        kind = "double" if isinstance(lo, float) else "long"
        return {f"lo_{kind}": lo, f"hi_{kind}": hi, "lo_exact": True, "hi_exact": True}
    (low, low_exact), (high, high_exact) = cut_lower(lo), cut_upper(hi)
    return {"lo_binary": low, "hi_binary": high, "lo_exact": low_exact, "hi_exact": high_exact}


def stored(value: pa.Scalar) -> Any:
    """A value as the format stores it."""
    kind, plain = value.type, value.as_py() if not pa.types.is_timestamp(value.type) else None
    if pa.types.is_decimal(kind):
        unscaled = int(plain.scaleb(kind.scale))
        return unscaled if kind.precision <= 18 else decimal_to_bytes(unscaled)
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return value.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32()).as_py()
    if isinstance(plain, str):
        return plain.encode()
    if isinstance(plain, float):
        return plain + 0.0
    return int(plain) if isinstance(plain, bool) else plain


def shifted(_file: int, row: Row) -> Row:
    """A lie for `Written.change`: bounds that no value lies between."""
    return {**row, "lo_long": row["lo_long"] + 1_000_000, "hi_long": row["hi_long"] + 1_000_000}
