"""The manifest: the state of a table's statistics in one small file; each change writes a new one."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from metastore.contract import read_contract
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.documents import BRIEF, FLAT, REQUIRED, UNSTORED, from_document, require_type, to_document
from metastore.format.objects import ObjectRef
from metastore.format.table_column import CASTING, Column, is_compatible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_MOST_PARTS = 1 << 31


@dataclass(frozen=True)
class SummaryRef:
    """An object and the columns that it holds.

    Attributes:
        object: The object.
        columns: The ordinals of the columns in their block or snapshot.
        part: The number of this part, from 0, and the number of all parts, if lists are divided by hashes.
    """

    object: ObjectRef = field(metadata=FLAT)
    columns: tuple[int, ...]
    part: tuple[int, int] | None = field(default=None, metadata=BRIEF)

    def check(self) -> None:
        """Raise a TypeError for an impossible part."""
        if self.part is None:
            return
        number, parts = self.part
        if not 0 <= number < parts < _MOST_PARTS:
            raise TypeError(f"a part {self.part}")


@dataclass(frozen=True)
class RanksRef:
    """A part of the ranks of some columns.

    Attributes:
        object: The object.
        columns: The columns of the snapshot that it holds, ascending.
        before_first: Number of values of each of them before this part.
    """

    object: ObjectRef = field(metadata=FLAT)
    columns: tuple[int, ...]
    before_first: tuple[int, ...] = field(metadata={"name": "before"})

    def before(self, column: int) -> int:
        """Return the number of values of a column before this part."""
        return self.before_first[self.columns.index(column)]

    def check(self) -> None:
        """Raise a TypeError unless each column has a count."""
        if len(self.columns) != len(self.before_first) or min(self.before_first, default=0) < 0:
            raise TypeError("ranks that no writer of this format makes")


FULL = "full"
FOOTER = "footer"
FILES = "files"

_LIMITS = read_contract("limits")
FORMAT: int = _LIMITS["format_version"]
FEATURES: frozenset[str] = frozenset()
MAX_MANIFEST_BYTES = 1 << 20
MAX_BLOCKS = 64
MAX_READ_BLOCKS: int = _LIMITS["manifest_blocks"]
MAX_READ_BYTES: int = _LIMITS["manifest_bytes"]
COMPUTED = (FILES, FOOTER, FULL)
"""Sources of statistics, from shallow to deep."""

_DIGEST = b"sha256:"
_NODES = "table-nodes"


@dataclass(frozen=True)
class TableIdentity:
    """The identity of the table that statistics describe.

    Attributes:
        format: "iceberg", "delta", "hudi" or "parquet".
        uuid: An identifier that changes when a table is dropped and created again.
        location: Its root URI.
        name: Its name for people; a label only.
    """

    format: str
    uuid: str
    location: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """The index of some data files.

    Attributes:
        id: A uuid.
        computed: "full", "footer" or "files".
        columns: The columns to which ordinals in the block's objects refer.
        files: The object that lists the data files.
        summary: The objects with their statistics.
        statistics: User-defined statistics that were computed or failed: name to version.
        zones: The objects with joint statistics of consecutive data files; none in small blocks.
    """

    id: str
    computed: str
    columns: tuple[Column, ...]
    files: ObjectRef
    summary: tuple[SummaryRef, ...]
    statistics: dict[str, int] = field(default_factory=dict, metadata=BRIEF)
    zones: tuple[SummaryRef, ...] = field(default=(), metadata=BRIEF)

    @cached_property
    def ordinals(self) -> Mapping[str, Sequence[int]]:
        """The ordinals of its columns by their keys."""
        return _number_by_key(self.columns)

    def check(self) -> None:
        """Raise an error for a block that no writer makes."""
        ordinals = chain.from_iterable(ref.columns for ref in (*self.summary, *self.zones))
        _require_parts(self, self.columns, ordinals)
        _require_kind("files", self.files)
        _require_kinds("summary", self.summary)
        _require_kinds("zones", self.zones)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The statistics of a table as of one of its snapshots.

    Attributes:
        id: Iceberg's snapshot id, Delta's version, Hudi's instant, or the digest of a listing.
        analyzed_at: The time of the ANALYZE, ISO 8601 in UTC.
        computed: The deepest source of its table level.
        exact: False if deletes exist and live rows were not read.
        columns: All leaves of its schema, in order.
        files: Data files that blocks cover.
        files_total: Data files that it has.
        rows: Live rows.
        physical_rows: Rows, deleted ones included.
        size_bytes: Bytes of its data files.
        live_size_bytes: The same, scaled by each file's share of live rows.
        table_files: The object that lists its data files.
        summary: The object with the columns' statistics, if any.
        sketches: The object with the columns' sketches, if any.
        frequencies: The objects with the columns' most frequent values; the first has the ten of every column.
        histograms: The object with the columns' histograms, if any.
        frequencies_asked: The value of `spark.metastore.frequencies.algorithm` at the ANALYZE.
        ranks: The objects with columns' exact ranks, for each column in the order of its ranks.
        distribution: The columns for which `frequencies` have the data files of each value, ascending.
        placed: The object with the number of rows that these lists cover in each data file, if any.
        expressions: Expressions over the columns that have statistics as well.
    """

    id: str
    analyzed_at: str
    computed: str
    exact: bool
    columns: tuple[Column, ...]
    files: int
    files_total: int
    rows: int | None
    physical_rows: int | None
    size_bytes: int
    live_size_bytes: int | None
    table_files: ObjectRef
    summary: ObjectRef | None = None
    sketches: ObjectRef | None = None
    frequencies: tuple[SummaryRef, ...] = ()
    histograms: ObjectRef | None = None
    frequencies_asked: str = "auto"
    ranks: tuple[RanksRef, ...] = ()
    distribution: tuple[int, ...] = ()
    placed: ObjectRef | None = None
    expressions: tuple[Column, ...] = field(default=(), metadata=BRIEF)

    @property
    def described(self) -> tuple[Column, ...]:
        """The columns, then the expressions, in the order of their ordinals in objects."""
        return self.columns + self.expressions

    @cached_property
    def ordinals(self) -> Mapping[str, Sequence[int]]:
        """The ordinals of its columns and expressions by their keys."""
        return _number_by_key(self.described)

    def find_ordinal(self, column: Column) -> int | None:
        """Find the ordinal of the analyzed column whose statistics are valid for a column, or None."""
        described = self.described
        for ordinal in self.ordinals.get(column.key, ()):
            if is_compatible(described[ordinal], column):
                return ordinal
        return None

    def check(self) -> None:
        """Raise an error for a snapshot that no writer makes."""
        references: tuple[SummaryRef | RanksRef, ...] = (*self.frequencies, *self.ranks)
        column_lists = [ref.columns for ref in references]
        _require_parts(self, self.described, chain(*column_lists, self.distribution))
        _require_kind("table-files", self.table_files)
        _require_kind("table-summary", self.summary)
        _require_kind("table-sketches", self.sketches)
        _require_kind("table-histograms", self.histograms)
        _require_kind("table-placed", self.placed)
        _require_kinds("table-frequencies", self.frequencies)
        _require_kinds("table-ranks", self.ranks)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All statistics of one table; `docs/format.md` explains the fields.

    A change makes a new one with `dataclasses.replace`; the store numbers and signs it at commit. `nodes` are the
    objects with partial merges of the newest table level, of every kind.
    """

    table: TableIdentity
    blocks: tuple[Block, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    sequence: int = field(default=0, metadata=REQUIRED)
    commit: str = field(default="", metadata=REQUIRED)
    previous: str | None = None
    written_at: str = field(default="", metadata=REQUIRED)
    writer: str = field(default="", metadata=REQUIRED)
    requires: tuple[str, ...] = ()
    nodes: tuple[ObjectRef, ...] = ()
    digest: str = field(default="", compare=False, metadata=UNSTORED)
    """The digest of its last line, in hex: the next manifest's `previous`. Set by `from_bytes`."""

    def to_bytes(self) -> bytes:
        """Write the manifest as it is stored: a line of JSON and a line with its digest."""
        schemas: dict[tuple[Column, ...], int] = {}
        table_nodes = tuple(ref for ref in self.nodes if ref.kind == _NODES)
        detail_nodes = tuple(ref for ref in self.nodes if ref.kind != _NODES)
        body = {
            "format": FORMAT,
            "requires": list(self.requires),
            "sequence": self.sequence,
            "commit": self.commit,
            "previous": self.previous,
            "written_at": self.written_at,
            "writer": self.writer,
            "table": to_document(self.table),
            "settings": self.settings,
            "blocks": [_to_shared(block, schemas) for block in self.blocks],
            "snapshots": [_to_shared(snapshot, schemas) for snapshot in self.snapshots],
            "nodes": to_document(table_nodes),
            "detail_nodes": to_document(detail_nodes),
            "schemas": to_document(tuple(schemas)),
        }
        line = _to_json(body).encode() + b"\n"
        return line + _digest_line(line)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "manifest") -> Manifest:
        """Read a manifest from its bytes."""
        body = _read_verified(data, name)
        _refuse_newer(body, name)
        line = data[: data.index(b"\n") + 1]
        try:
            manifest = _from_json(body)
        except (KeyError, TypeError, AttributeError, IndexError) as e:
            raise DamagedObject(name, f"a field is missing or of another type ({e})") from e
        return replace(manifest, digest=hashlib.sha256(line).hexdigest())


def iterate_objects(part: Any) -> Iterator[ObjectRef]:
    """List all objects that a manifest or a part of it names; detail objects are named in the rows of `files`."""
    if isinstance(part, ObjectRef):
        yield part
    elif isinstance(part, Column):
        return
    elif is_dataclass(part):
        yield from iterate_objects(tuple(vars(part).values()))
    elif isinstance(part, dict):
        yield from iterate_objects(tuple(part.values()))
    elif isinstance(part, tuple | list):
        for element in part:
            yield from iterate_objects(element)


def describe_block(
    block_id: str,
    computed: str,
    columns: tuple[Column, ...],
    objects: tuple[SummaryRef, ...],
    table: TableIdentity,
    settings: dict[str, Any],
    statistics: dict[str, int] | None = None,
) -> str:
    """Write the value of a `files` object's footer key `metastore.block`: the block's JSON without `files`.

    `objects` are its summaries and its zones.
    """
    zones = []
    summary = []
    for ref in objects:
        if ref.object.kind == "zones":
            zones.append(to_document(ref))
        else:
            summary.append(to_document(ref))
    body = {
        "id": block_id,
        "computed": computed,
        "columns": to_document(columns),
        "summary": summary,
        "table": to_document(table),
        "settings": settings,
    }
    if statistics:
        body["statistics"] = statistics
    if zones:
        body["zones"] = zones
    return _to_json(body)


def _to_json(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse_block_description(text: str, files: ObjectRef) -> tuple[Block, TableIdentity, dict[str, Any]]:
    """Read the block that a `files` object describes, with the table and the settings it was made for."""
    try:
        body = json.loads(text)
        table = from_document(TableIdentity, body["table"])
        settings = dict(body["settings"])
        body["files"] = to_document(files)
        block = from_document(Block, _with_columns(body, table.format, []))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as e:
        raise DamagedObject(files.name, f"it does not describe a block ({e})") from e
    return block, table, settings


def _digest_line(line: bytes) -> bytes:
    return _DIGEST + hashlib.sha256(line).hexdigest().encode() + b"\n"


def _read_verified(data: bytes, name: str) -> dict[str, Any]:
    """Read a manifest's JSON after comparing its digest."""
    if len(data) > MAX_READ_BYTES:
        raise DamagedObject(name, f"{len(data)} bytes")
    line, newline, trailer = data.partition(b"\n")
    if trailer != _digest_line(line + newline):
        raise DamagedObject(name, "its digest is not that of its bytes")
    try:
        body = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as e:
        raise DamagedObject(name, f"it is not JSON ({e})") from e
    if not isinstance(body, dict):
        raise DamagedObject(name, "it is not a manifest")
    return body


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _refuse_newer(body: dict[str, Any], name: str) -> None:
    try:
        version = require_type(int, body.get("format"))
        requires = list(map(partial(require_type, str), _optional_list(body, "requires")))
    except TypeError as e:
        raise DamagedObject(name, f"it names no format ({e})") from e
    if version < 1:
        raise DamagedObject(name, f"it names the format {version}")
    if version > FORMAT:
        raise FormatTooNew(name, f"format {version}")
    for feature in requires:
        if feature not in FEATURES:
            raise FormatTooNew(name, f"the feature {feature}")


def _from_json(body: dict[str, Any]) -> Manifest:
    table_format = from_document(TableIdentity, body["table"]).format
    schemas = [_bind_columns(columns, table_format) for columns in _optional_list(body, "schemas")]
    blocks = require_type(list, body["blocks"])
    if len(blocks) > MAX_READ_BLOCKS:
        raise TypeError(f"{len(blocks)} blocks")
    snapshots = require_type(list, body["snapshots"])
    document = {
        **body,
        "nodes": _optional_list(body, "nodes") + _optional_list(body, "detail_nodes"),
        "blocks": [_with_columns(block, table_format, schemas) for block in blocks],
        "snapshots": [_with_columns(snapshot, table_format, schemas) for snapshot in snapshots],
    }
    return from_document(Manifest, document)


def _optional_list(body: dict[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    elements: list[Any] = require_type(list, value)
    return elements


def _with_columns(part: dict[str, Any], table_format: str, schemas: list[tuple[Column, ...]]) -> dict[str, Any]:
    """Bind the columns of a block or snapshot; its document has them as the number of a schema, or as a list."""
    columns = part["columns"]
    if type(columns) is int and columns >= 0:
        return {**part, "columns": schemas[columns]}
    return {**part, "columns": _bind_columns(columns, table_format)}


def _bind_columns(value: Any, table_format: str) -> tuple[Column, ...]:
    columns = [from_document(Column, document) for document in require_type(list, value)]
    if table_format in CASTING:
        columns = [replace(column, casts=True) for column in columns]
    return tuple(columns)


def _to_shared(part: Block | Snapshot, schemas: dict[tuple[Column, ...], int]) -> dict[str, Any]:
    """Write a block or snapshot with the number of its schema, which is added to the schemas if it is new."""
    document: dict[str, Any] = to_document(replace(part, columns=()))
    document["columns"] = schemas.setdefault(part.columns, len(schemas))
    return document


def _number_by_key(columns: Sequence[Column]) -> Mapping[str, Sequence[int]]:
    ordinals: dict[str, list[int]] = defaultdict(list)
    for ordinal, column in enumerate(columns):
        ordinals[column.key].append(ordinal)
    return ordinals


def _require_kinds(kind: str, references: Sequence[SummaryRef | RanksRef]) -> None:
    for ref in references:
        _require_kind(kind, ref.object)


def _require_kind(kind: str, ref: ObjectRef | None) -> None:
    if ref is not None and ref.kind != kind:
        raise DamagedObject(ref.name, f"it stands where {kind} does")


def _require_parts(part: Block | Snapshot, columns: Sequence[Column], ordinals: Iterable[int]) -> None:
    if part.computed not in COMPUTED or not set(ordinals) <= set(range(len(columns))):
        raise TypeError(f"a {type(part).__name__} that no writer of this format makes")
