"""The manifest: the whole state of one table's statistics, in one small file that is replaced as a whole."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from metastore.contract import read_contract
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.manifest_references import RanksRef, SummaryRef, optional_list, optional_mapping, require_type
from metastore.format.objects import ObjectRef
from metastore.format.table_column import Column

if TYPE_CHECKING:
    from collections.abc import Iterator


FULL, FOOTER, FILES = "full", "footer", "files"

_LIMITS = read_contract("limits")
FORMAT: int = _LIMITS["format_version"]
FEATURES: frozenset[str] = frozenset()
MAX_MANIFEST_BYTES = 1 << 20
MAX_BLOCKS = 64
MAX_READ_BLOCKS: int = _LIMITS["manifest_blocks"]
MAX_READ_BYTES: int = _LIMITS["manifest_bytes"]
COMPUTED = ("files", "footer", "full")
"""What statistics were computed from, from shallow to deep."""

_DIGEST = b"sha256:"
_NODES = "table-nodes"


@dataclass(frozen=True)
class TableIdentity:
    """Which table the statistics describe.

    Attributes:
        format: "iceberg", "delta", "hudi" or "parquet".
        uuid: What changes when a table is dropped and created again.
        location: Its root URI.
        name: What people call it; a label only.
    """

    format: str
    uuid: str
    location: str
    name: str


@dataclass(frozen=True)
class Block:
    """The index of some data files.

    Attributes:
        id: A uuid.
        computed: "full", "footer" or "files".
        columns: The columns that ordinals in the block's objects mean.
        files: The object that lists the data files.
        summary: The objects with their statistics.
        statistics: User-defined statistics that were computed, or tried and failed: name to version.
        zones: The objects with what `summary` says of consecutive data files together; none in small blocks.
    """

    id: str
    computed: str
    columns: tuple[Column, ...]
    files: ObjectRef
    summary: tuple[SummaryRef, ...]
    statistics: dict[str, int] = field(default_factory=dict)
    zones: tuple[SummaryRef, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The statistics of a table as of one of its snapshots.

    Attributes:
        id: Iceberg's snapshot id, Delta's version, Hudi's instant, or the digest of a listing.
        analyzed_at: When, ISO 8601 in UTC.
        computed: The deepest that its table level holds.
        exact: False where deletes exist and live rows were not read.
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
        frequencies_asked: How lists of values were to be made: a value of `spark.metastore.frequencies.algorithm`.
        ranks: The objects with columns' exact ranks, for each column in the order of its ranks.
        distribution: The columns of which `frequencies` tell where each value lives, ascending.
        placed: The object that says of how many rows of each data file they tell, if any.
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


@dataclass(frozen=True)
class Manifest:
    """All that is known about one table; `docs/format.md` explains the fields.

    A change makes a new one with `dataclasses.replace`; the store numbers and signs it at commit. `nodes` are the
    objects with partial merges of the newest table level, of every kind.
    """

    table: TableIdentity
    blocks: tuple[Block, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    sequence: int = 0
    commit: str = ""
    previous: str | None = None
    written_at: str = ""
    writer: str = ""
    requires: tuple[str, ...] = ()
    nodes: tuple[ObjectRef, ...] = ()
    digest: str = field(default="", compare=False)
    """What its last line says, in hex: the next manifest's `previous`. Set by `from_bytes`."""

    def to_bytes(self) -> bytes:
        """The manifest as it is stored: a line of JSON and a line with its digest."""
        schemas: dict[tuple[Column, ...], int] = {}
        body = {
            "format": FORMAT,
            "requires": list(self.requires),
            "sequence": self.sequence,
            "commit": self.commit,
            "previous": self.previous,
            "written_at": self.written_at,
            "writer": self.writer,
            "table": dict(self.table.__dict__),
            "settings": self.settings,
            "blocks": [_block_to_json(b, schemas.setdefault(b.columns, len(schemas))) for b in self.blocks],
            "snapshots": [_snapshot_to_json(s, schemas.setdefault(s.columns, len(schemas))) for s in self.snapshots],
            "nodes": [ref.to_json() for ref in self.nodes if ref.kind == _NODES],
            "detail_nodes": [ref.to_json() for ref in self.nodes if ref.kind != _NODES],
            "schemas": [[column.to_json() for column in columns] for columns in schemas],
        }
        line = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        return line + _DIGEST + hashlib.sha256(line).hexdigest().encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "manifest") -> Manifest:
        """The manifest that these bytes hold."""
        body = _verified(data, name)
        _refuse_newer(body, name)
        try:
            return replace(_from_json(body), digest=hashlib.sha256(data[: data.index(b"\n") + 1]).hexdigest())
        except (KeyError, TypeError, AttributeError, IndexError) as e:
            raise DamagedObject(name, f"a field is missing or of another type ({e})") from e


def iterate_objects(part: Any) -> Iterator[ObjectRef]:
    """All objects that a manifest, or a part of one, names; detail objects stand in the rows of `files`."""
    if isinstance(part, ObjectRef):
        yield part
    elif isinstance(part, Column):
        return
    elif is_dataclass(part):
        yield from iterate_objects(tuple(vars(part).values()))
    elif isinstance(part, dict):
        yield from iterate_objects(tuple(part.values()))
    elif isinstance(part, tuple | list):
        for each in part:
            yield from iterate_objects(each)


def describe_block(
    block_id: str,
    computed: str,
    columns: tuple[Column, ...],
    objects: tuple[SummaryRef, ...],
    table: TableIdentity,
    settings: dict[str, Any],
    statistics: dict[str, int] | None = None,
) -> str:
    """The value of a `files` object's footer key `metastore.block`: the block's JSON without `files`.

    `objects` are its summaries and its zones.
    """
    zones = tuple(ref for ref in objects if ref.object.kind == "zones")
    summary = tuple(ref for ref in objects if ref.object.kind != "zones")
    body = {
        "id": block_id,
        "computed": computed,
        "columns": [column.to_json() for column in columns],
        "summary": [ref.to_json() for ref in summary],
        "table": dict(table.__dict__),
        "settings": settings,
        **_own_to_json(statistics or {}),
        **_zones_to_json(zones),
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse_block_description(text: str, files: ObjectRef) -> tuple[Block, TableIdentity, dict[str, Any]]:
    """The block that a `files` object describes, with the table and the settings it was made for."""
    try:
        body = json.loads(text)
        table = _identity(body["table"])
        block = _block_from_json({**body, "files": files.to_json()}, _Schemas(table.format, []))
        return block, table, dict(body["settings"])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as e:
        raise DamagedObject(files.name, f"it does not describe a block ({e})") from e


def _verified(data: bytes, name: str) -> dict[str, Any]:
    if len(data) > MAX_READ_BYTES:
        raise DamagedObject(name, f"{len(data)} bytes")
    line, newline, trailer = data.partition(b"\n")
    expected = _DIGEST + hashlib.sha256(line + newline).hexdigest().encode() + b"\n"
    if trailer != expected:
        raise DamagedObject(name, "its digest is not that of its bytes")
    try:
        body = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as e:
        raise DamagedObject(name, f"it is no JSON ({e})") from e
    if not isinstance(body, dict):
        raise DamagedObject(name, "it is no manifest")
    return body


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _refuse_newer(body: dict[str, Any], name: str) -> None:
    try:
        version = require_type(body.get("format"), int)
        requires = [require_type(feature, str) for feature in optional_list(body, "requires")]
    except TypeError as e:
        raise DamagedObject(name, f"it names no format ({e})") from e
    if version < 1:
        raise DamagedObject(name, f"it names the format {version}")
    if version > FORMAT:
        raise FormatTooNew(name, f"format {version}")
    unknown = [feature for feature in requires if feature not in FEATURES]
    if unknown:
        raise FormatTooNew(name, f"the feature {unknown[0]}")


def _from_json(body: dict[str, Any]) -> Manifest:
    table = _identity(body["table"])
    schemas = _Schemas(table.format, optional_list(body, "schemas"))
    if len(require_type(body["blocks"], list)) > MAX_READ_BLOCKS:
        raise TypeError(f"{len(body['blocks'])} blocks")
    return Manifest(
        table=table,
        blocks=tuple(_block_from_json(block, schemas) for block in body["blocks"]),
        snapshots=tuple(_snapshot_from_json(snapshot, schemas) for snapshot in require_type(body["snapshots"], list)),
        settings=optional_mapping(body, "settings"),
        sequence=require_type(body["sequence"], int),
        commit=require_type(body["commit"], str),
        previous=require_type(body.get("previous"), str, type(None)),
        written_at=require_type(body["written_at"], str),
        writer=require_type(body["writer"], str),
        requires=tuple(optional_list(body, "requires")),
        nodes=tuple(
            ObjectRef.from_json(ref) for name in ("nodes", "detail_nodes") for ref in optional_list(body, name)
        ),
    )


def _identity(value: Any) -> TableIdentity:
    return TableIdentity(*(require_type(value[name], str) for name in TableIdentity.__dataclass_fields__))


class _Schemas:
    """The lists of columns that blocks and snapshots share by number."""

    def __init__(self, table_format: str, shared: Any) -> None:
        self._format = table_format
        self._shared = [self._read(one) for one in shared]

    def columns(self, value: Any) -> tuple[Column, ...]:
        return self._shared[value] if type(value) is int and value >= 0 else self._read(value)

    def _read(self, value: Any) -> tuple[Column, ...]:
        return tuple(Column.from_json(column, self._format) for column in require_type(value, list))


def _block_to_json(block: Block, columns: int) -> dict[str, Any]:
    return {
        "id": block.id,
        "computed": block.computed,
        "columns": columns,
        "files": block.files.to_json(),
        "summary": [ref.to_json() for ref in block.summary],
        **_own_to_json(block.statistics),
        **_zones_to_json(block.zones),
    }


def _own_to_json(statistics: dict[str, int]) -> dict[str, Any]:
    return {"statistics": statistics} if statistics else {}


def _zones_to_json(zones: tuple[SummaryRef, ...]) -> dict[str, Any]:
    return {"zones": [ref.to_json() for ref in zones]} if zones else {}


def _block_from_json(value: Any, schemas: _Schemas) -> Block:
    columns = schemas.columns(value["columns"])
    summary = tuple(SummaryRef.from_json(ref, "summary") for ref in require_type(value["summary"], list))
    zones = tuple(SummaryRef.from_json(ref, "zones") for ref in optional_list(value, "zones"))
    named = {i for ref in (*summary, *zones) for i in ref.columns}
    if value["computed"] not in COMPUTED or not named <= set(range(len(columns))):
        raise TypeError("a block that no writer of this format makes")
    own = {name: require_type(version, int) for name, version in optional_mapping(value, "statistics").items()}
    files = ObjectRef.from_json(value["files"], "files")
    return Block(require_type(value["id"], str), value["computed"], columns, files, summary, own, zones)


def _snapshot_to_json(snapshot: Snapshot, columns: int) -> dict[str, Any]:
    objects = {
        name: None if ref is None else ref.to_json()
        for name, ref in (
            ("table_files", snapshot.table_files),
            ("summary", snapshot.summary),
            ("sketches", snapshot.sketches),
            ("histograms", snapshot.histograms),
            ("placed", snapshot.placed),
        )
    }
    lists = [ref.to_json() for ref in snapshot.frequencies]
    ranks = [ref.to_json() for ref in snapshot.ranks]
    return {**snapshot.__dict__, **objects, "frequencies": lists, "ranks": ranks, "columns": columns}


def _snapshot_from_json(value: Any, schemas: _Schemas) -> Snapshot:
    def optional(name: str) -> ObjectRef | None:
        return None if value.get(name) is None else ObjectRef.from_json(value[name], f"table-{name}")

    columns = schemas.columns(value["columns"])
    frequencies = tuple(SummaryRef.from_json(ref, "table-frequencies") for ref in optional_list(value, "frequencies"))
    ranks = tuple(RanksRef.from_json(ref) for ref in optional_list(value, "ranks"))
    distribution = tuple(require_type(i, int) for i in optional_list(value, "distribution"))
    named = {i for ref in frequencies for i in ref.columns} | {i for ref in ranks for i in ref.columns}
    named |= set(distribution)
    if value["computed"] not in COMPUTED or not named <= set(range(len(columns))):
        raise TypeError("a snapshot that no writer of this format makes")
    return Snapshot(
        id=require_type(value["id"], str),
        analyzed_at=require_type(value["analyzed_at"], str),
        computed=value["computed"],
        exact=require_type(value["exact"], bool),
        columns=columns,
        files=require_type(value["files"], int),
        files_total=require_type(value["files_total"], int),
        rows=require_type(value.get("rows"), int, type(None)),
        physical_rows=require_type(value.get("physical_rows"), int, type(None)),
        size_bytes=require_type(value["size_bytes"], int),
        live_size_bytes=require_type(value.get("live_size_bytes"), int, type(None)),
        table_files=ObjectRef.from_json(value["table_files"], "table-files"),
        summary=optional("summary"),
        sketches=optional("sketches"),
        frequencies=frequencies,
        histograms=optional("histograms"),
        frequencies_asked="auto"
        if value.get("frequencies_asked") is None
        else require_type(value["frequencies_asked"], str),
        ranks=ranks,
        distribution=distribution,
        placed=optional("placed"),
    )
