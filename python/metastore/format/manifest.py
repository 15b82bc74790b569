"""The manifest: the whole state of one table's statistics, in one small file that is replaced as a whole."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from metastore.contract import read_contract
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.documents import BRIEF, FLAT, REQUIRED, UNSTORED, from_document, require_type, to_document
from metastore.format.objects import ObjectRef
from metastore.format.table_column import CASTING, Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_MOST_PARTS = 1 << 31


@dataclass(frozen=True)
class SummaryRef:
    """An object and the columns that it holds.

    Attributes:
        object: The object.
        columns: Their ordinals, of its block or snapshot.
        part: Of lists that are cut by their values' hashes, which part this is, from 0, and of how many.
    """

    object: ObjectRef = field(metadata=FLAT)
    columns: tuple[int, ...]
    part: tuple[int, int] | None = field(default=None, metadata=BRIEF)

    def check(self) -> None:
        """Refuses a part of nothing."""
        if self.part is not None and not 0 <= self.part[0] < self.part[1] < _MOST_PARTS:
            raise TypeError(f"a part {self.part}")


@dataclass(frozen=True)
class RanksRef:
    """A part of the ranks of some columns.

    Attributes:
        object: The object.
        columns: The columns of the snapshot that it holds, ascending.
        before_first: For each of them, how many of its values come before this part.
    """

    object: ObjectRef = field(metadata=FLAT)
    columns: tuple[int, ...]
    before_first: tuple[int, ...] = field(metadata={"name": "before"})

    def before(self, column: int) -> int:
        """How many values of a column come before this part."""
        return self.before_first[self.columns.index(column)]

    def check(self) -> None:
        """Refuses other columns than counts."""
        if len(self.columns) != len(self.before_first) or any(count < 0 for count in self.before_first):
            raise TypeError("ranks that no writer of this format makes")


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
    statistics: dict[str, int] = field(default_factory=dict, metadata=BRIEF)
    zones: tuple[SummaryRef, ...] = field(default=(), metadata=BRIEF)

    def check(self) -> None:
        """Refuses what no writer makes."""
        _require_parts(self, self.columns, (i for ref in (*self.summary, *self.zones) for i in ref.columns))
        _require_kind("files", self.files)
        _require_kind("summary", *(ref.object for ref in self.summary))
        _require_kind("zones", *(ref.object for ref in self.zones))


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
        expressions: Expressions over the columns that have statistics, too.
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
        """What its objects number: the columns, then the expressions."""
        return self.columns + self.expressions

    def check(self) -> None:
        """Refuses what no writer makes."""
        named = [ref.columns for ref in self.frequencies] + [ref.columns for ref in self.ranks]
        _require_parts(self, self.described, chain(*named, self.distribution))
        for part in ("files", "summary", "sketches", "histograms"):
            _require_kind(f"table-{part}", self.table_files if part == "files" else getattr(self, part))
        _require_kind("table-placed", self.placed)
        _require_kind("table-frequencies", *(ref.object for ref in self.frequencies))
        _require_kind("table-ranks", *(ref.object for ref in self.ranks))


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
    sequence: int = field(default=0, metadata=REQUIRED)
    commit: str = field(default="", metadata=REQUIRED)
    previous: str | None = None
    written_at: str = field(default="", metadata=REQUIRED)
    writer: str = field(default="", metadata=REQUIRED)
    requires: tuple[str, ...] = ()
    nodes: tuple[ObjectRef, ...] = ()
    digest: str = field(default="", compare=False, metadata=UNSTORED)
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
            "table": to_document(self.table),
            "settings": self.settings,
            "blocks": [_to_shared(block, schemas) for block in self.blocks],
            "snapshots": [_to_shared(snapshot, schemas) for snapshot in self.snapshots],
            "nodes": [to_document(ref) for ref in self.nodes if ref.kind == _NODES],
            "detail_nodes": [to_document(ref) for ref in self.nodes if ref.kind != _NODES],
            "schemas": [to_document(columns) for columns in schemas],
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
        "columns": to_document(columns),
        "summary": to_document(summary),
        "table": to_document(table),
        "settings": settings,
        **({"statistics": statistics} if statistics else {}),
        **({"zones": to_document(zones)} if zones else {}),
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse_block_description(text: str, files: ObjectRef) -> tuple[Block, TableIdentity, dict[str, Any]]:
    """The block that a `files` object describes, with the table and the settings it was made for."""
    try:
        body = json.loads(text)
        table = from_document(TableIdentity, body["table"])
        described = _with_columns({**body, "files": to_document(files)}, table.format, [])
        return from_document(Block, described), table, dict(body["settings"])
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
        raise DamagedObject(name, f"it is not JSON ({e})") from e
    if not isinstance(body, dict):
        raise DamagedObject(name, "it is not a manifest")
    return body


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _refuse_newer(body: dict[str, Any], name: str) -> None:
    try:
        version = require_type(int, body.get("format"))
        requires = [require_type(str, feature) for feature in _optional_list(body, "requires")]
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
    table_format = from_document(TableIdentity, body["table"]).format
    shared = [_bind_columns(one, table_format) for one in _optional_list(body, "schemas")]
    if len(require_type(list, body["blocks"])) > MAX_READ_BLOCKS:
        raise TypeError(f"{len(body['blocks'])} blocks")
    nodes = (_optional_list(body, name) for name in ("nodes", "detail_nodes"))
    parts = {
        name: [_with_columns(part, table_format, shared) for part in require_type(list, body[name])]
        for name in ("blocks", "snapshots")
    }
    return from_document(Manifest, {**body, **parts, "nodes": list(chain(*nodes))})


def _optional_list(body: dict[str, Any], name: str) -> list[Any]:
    value: list[Any] = [] if body.get(name) is None else require_type(list, body[name])
    return value


def _with_columns(part: dict[str, Any], table_format: str, shared: list[tuple[Column, ...]]) -> dict[str, Any]:
    """A block or snapshot with the columns that its document has by their number among those of all, or as a list."""
    columns = part["columns"]
    is_shared = type(columns) is int and columns >= 0
    return {**part, "columns": shared[columns] if is_shared else _bind_columns(columns, table_format)}


def _bind_columns(value: Any, table_format: str) -> tuple[Column, ...]:
    columns = [from_document(Column, one) for one in require_type(list, value)]
    return tuple(replace(one, casts=True) for one in columns) if table_format in CASTING else tuple(columns)


def _to_shared(part: Block | Snapshot, schemas: dict[tuple[Column, ...], int]) -> dict[str, Any]:
    number = schemas.setdefault(part.columns, len(schemas))
    return {**to_document(replace(part, columns=())), "columns": number}


def _require_kind(kind: str, *objects: ObjectRef | None) -> None:
    for ref in objects:
        if ref is not None and ref.kind != kind:
            raise DamagedObject(ref.name, f"it stands where {kind} does")


def _require_parts(part: Block | Snapshot, columns: Sequence[Column], ordinals: Iterable[int]) -> None:
    if part.computed not in COMPUTED or not set(ordinals) <= set(range(len(columns))):
        raise TypeError(f"a {type(part).__name__} that no writer of this format makes")
