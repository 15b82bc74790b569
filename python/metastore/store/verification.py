"""Verification: every object that a manifest names is there, is what was written, and does not contradict itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject
from metastore.format.data_files import list_detail_objects
from metastore.format.manifest import iterate_objects
from metastore.format.object_schemas import DETAILS, SCHEMAS
from metastore.format.objects import (
    KIND_KEY,
    MAX_OBJECT_BYTES,
    check_bytes,
    decode_object,
    identify_object,
    object_kind,
    verify_chunks,
)
from metastore.format.parquet_footer import read_footer
from metastore.format.zones import IDENTITIES_KEY, build_zones, read_row_counts
from metastore.store import commit_log
from metastore.store.contradictions import (
    check_file_list,
    check_identities,
    check_snapshot,
    check_statistics,
    check_zones,
)
from metastore.store.retention import is_leftover

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Block, Manifest, Snapshot
    from metastore.format.objects import ObjectRef
    from metastore.store.table_store import Store


OK, MISSING, DAMAGED, CONTRADICTORY = "ok", "missing", "damaged", "contradictory"
UNKNOWN = "unknown"
"""What readers pass over, such as a kind of a later version: nothing is wrong with it."""
LATER = "a later version writes objects of this kind; this one passes over it"


@dataclass(frozen=True)
class Damage:
    """What of a manifest is not what was written, or contradicts itself.

    Attributes:
        objects: The names of such objects.
        blocks: Ids of blocks with such an object other than zones.
        zones: Ids of blocks of which only zones, without which all is known, are such objects.
    """

    objects: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.objects)


@dataclass(frozen=True)
class ObjectFinding:
    """What was found about one object.

    Attributes:
        object: Its name.
        kind: Its kind.
        size: Its bytes.
        rows: Its rows, None where they are not known.
        state: `ok`, `missing`, `damaged`, `contradictory` or `unknown`.
        problem: What is wrong; empty where nothing is.
    """

    object: str
    kind: str
    size: int
    rows: int | None
    state: str
    problem: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it is to be repaired."""
        return self.state not in (OK, UNKNOWN)


def verify_manifest(store: Store, manifest: Manifest) -> Iterator[ObjectFinding]:
    """Reads every object of a manifest completely and checks it."""
    details: dict[str, tuple[int, str]] = {}
    for block in manifest.blocks:
        yield from _block(store, block, details)
    yield from _details(store, details)
    for snapshot in manifest.snapshots:
        yield from _snapshot(store, snapshot)
    yield from (_read(store, ref)[0] for ref in manifest.nodes)


def verify_block(store: Store, block: Block) -> Iterator[ObjectFinding]:
    """Reads every object of a block completely and checks it."""
    details: dict[str, tuple[int, str]] = {}
    yield from _block(store, block, details)
    yield from _details(store, details)


def find_damage(store: Store, manifest: Manifest) -> Damage:
    """Reads every object of a manifest completely and tells what has to be made again."""
    wrong = {found.object: found.kind for found in verify_manifest(store, manifest) if found.is_wrong}
    if not wrong:
        return Damage()
    kinds = {block.id: {wrong[name] for name in _named_by(store, block, wrong)} for block in manifest.blocks}
    return Damage(
        frozenset(wrong),
        frozenset(block for block, found in kinds.items() if found - {"zones"}),
        frozenset(block for block, found in kinds.items() if found == {"zones"}),
    )


def _named_by(store: Store, block: Block, wrong: Collection[str]) -> set[str]:
    """Those of some objects that are a block's; without its details where its list of files is wrong itself."""
    named = {ref.name for ref in iterate_objects(block)}
    if block.files.name not in wrong:
        files = store.get(block.files)
        named.update(*({name for name, _, _ in list_detail_objects(files, kind)} for kind in DETAILS))
    return named.intersection(wrong)


def _details(store: Store, details: Mapping[str, tuple[int, str]]) -> Iterator[ObjectFinding]:
    for name, (length, digest) in sorted(details.items()):
        yield _detail(store, name, length, digest)


def _block(store: Store, block: Block, details: dict[str, tuple[int, str]]) -> Iterator[ObjectFinding]:
    finding, files = _read(store, block.files)
    if files is None:
        finding = replace(finding, problem=f"{finding.problem}; what it lists cannot be checked")
    else:
        finding = _with(finding, check_file_list(files))
        if block.zones and finding.state == OK:
            finding = _with(finding, check_identities(_identities(store, block.files), files))
        for kind in DETAILS:
            details.update({name: (length, digest) for name, length, digest in list_detail_objects(files, kind)})
    yield finding
    expected: list[pa.Table] | None = []
    for ref in block.summary:
        finding, rows = _read(store, ref.object)
        if rows is not None:
            finding = _with(finding, check_statistics(rows, block.columns, ref.columns, files))
        if not block.zones or files is None or finding.state != OK:
            expected = None
        elif expected is not None:
            expected.append(build_zones(rows, block.columns, read_row_counts(files)))
        yield finding
    for ref in block.zones:
        finding, rows = _read(store, ref.object)
        if rows is not None and expected is not None:
            finding = _with(finding, check_zones(rows, expected))
        yield finding


def _identities(store: Store, ref: ObjectRef) -> str | None:
    return read_footer(ref.name, store.read_bytes(ref.name)).texts.get(IDENTITIES_KEY)


def _snapshot(store: Store, snapshot: Snapshot) -> Iterator[ObjectFinding]:
    for ref in iterate_objects(snapshot):
        finding, rows = _read(store, ref)
        if rows is not None and ref.kind == "table-files":
            finding = _with(finding, check_snapshot(rows, snapshot))
        if rows is not None and ref.kind == "table-summary":
            finding = _with(finding, check_statistics(rows, snapshot.described, range(len(snapshot.described)), None))
        yield finding


def _read(store: Store, ref: ObjectRef) -> tuple[ObjectFinding, pa.Table | None]:
    """The finding about an object that is named with all its digests, and its rows where they are sound."""
    whole = ObjectFinding(ref.name, ref.kind, ref.length, ref.rows, OK)
    try:
        data = store.read_bytes(ref.name, ref.length)
    except DamagedObject as damage:
        return _unread(whole, damage), None
    try:
        if ref.kind not in SCHEMAS:
            check_bytes(ref, data)
            return replace(whole, state=UNKNOWN, problem=LATER), None
        rows = decode_object(ref, data)
        _check_footer(ref, data)
    except DamagedObject as damage:
        return _failed(whole, DAMAGED, damage), None
    return whole, rows


def _detail(store: Store, name: str, length: int, digest: str) -> ObjectFinding:
    """The finding about an object that rows of `files` name: its name vouches for its bytes, and so do they."""
    kind = name.rsplit("-", 5)[0]
    try:
        data = store.read_bytes(name, length or MAX_OBJECT_BYTES)  # rows of damaged lists may not say it
    except DamagedObject as damage:
        return _unread(ObjectFinding(name, kind, length, None, OK), damage)
    try:
        ref, _ = identify_object(name, data)
        decode_object(ref, data)
        _check_footer(ref, data)
    except DamagedObject as damage:
        return _failed(ObjectFinding(name, kind, length, None, OK), DAMAGED, damage)
    if (ref.length, ref.sha256) != (length, digest):
        return ObjectFinding(name, kind, length, ref.rows, DAMAGED, "it is not the one that its block names")
    return ObjectFinding(name, kind, length, ref.rows, OK)


def _check_footer(ref: ObjectRef, data: bytes) -> None:
    """Checks what only partial reads rely on: a whole object may be sound and its footer not."""
    footer = verify_chunks(ref, data)
    if footer.texts.get(KIND_KEY) != ref.kind:
        raise DamagedObject(ref.name, "its footer names another kind")
    present = footer.metadata.schema.to_arrow_schema().names
    missing = [field.name for field in SCHEMAS[ref.kind] if field.name not in present]
    required = [name for name in missing if not SCHEMAS[ref.kind].field(name).nullable]
    if required:
        raise DamagedObject(ref.name, f"it has no column {required[0]}")


def _unread(whole: ObjectFinding, damage: DamagedObject) -> ObjectFinding:
    return _failed(whole, MISSING if damage.reason.startswith("it is missing") else DAMAGED, damage)


def _failed(whole: ObjectFinding, state: str, damage: DamagedObject) -> ObjectFinding:
    return replace(whole, state=state, problem=damage.reason)


def _with(finding: ObjectFinding, problems: list[str]) -> ObjectFinding:
    if not problems:
        return finding
    return replace(finding, state=CONTRADICTORY, problem="; ".join(problems))


_UNNAMED = "it is not known whether a damaged list of data files names it"


def list_unchecked(store: Store, checked: Sequence[ObjectFinding]) -> Iterator[ObjectFinding]:
    """One finding for each thing in the folders of a store that is neither checked nor what `gc` is there for."""
    stored = store.list_entries()
    names = {found.object for found in checked}
    may_be_named = any(found.kind == "files" and found.is_wrong for found in checked)
    manifests = _manifests(store, [path.removeprefix("log/") for path in stored if path.startswith("log/")])
    for path, what in sorted(stored.items()):
        name = path.removeprefix("objects/")
        if isinstance(what, str) and name not in names:
            yield ObjectFinding(name, "", 0, None, UNKNOWN, f"it is {what}: only plain files are read")
        elif isinstance(what, int) and not is_leftover(path):
            kind, why = ("", manifests.get(path)) if path.startswith("log/") else _object(name, names)
            if why is _UNNAMED and not may_be_named:
                continue
            if why:
                yield ObjectFinding(name, kind, what, None, UNKNOWN, why)


def _manifests(store: Store, names: Sequence[str]) -> dict[str, str]:
    """Why readers pass over entries of the log, by their paths."""
    numbered = commit_log.parse_log_names(names)
    head = store.run(commit_log.find_head())
    used = head.manifest.sequence if head.manifest else 0
    other = {f"log/{name}": "no manifest has this name" for name in names if name not in numbered.values()}
    damaged = {f"log/{name}": f"it is not a whole manifest: {used} is used" for n, name in numbered.items() if n > used}
    return other | damaged


def _object(name: str, named: set[str]) -> tuple[str, str]:
    """The kind of an object, and why it is passed over; no reason where it is not."""
    try:
        kind = object_kind(name)
    except DamagedObject:
        return "", "no object has this name"
    if name in named:
        return kind, ""
    if kind not in SCHEMAS:
        return kind, LATER
    return kind, _UNNAMED
