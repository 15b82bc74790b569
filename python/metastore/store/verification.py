"""Verification: every object that a manifest names is present, has its digest, and does not contradict itself."""

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
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef
    from metastore.format.objects import ObjectRef
    from metastore.store.table_store import Store


OK = "ok"
MISSING = "missing"
DAMAGED = "damaged"
CONTRADICTORY = "contradictory"
UNKNOWN = "unknown"
"""The state of things that readers pass over, such as a kind of a later version: nothing is wrong with them."""
LATER = "a later version writes objects of this kind; this one passes over it"


@dataclass(frozen=True)
class Damage:
    """The objects of a manifest that are missing, damaged or contradictory.

    Attributes:
        objects: Their names.
        blocks: Ids of blocks with such an object other than zones.
        zones: Ids of blocks with such zones alone: these can be computed again from summaries.
    """

    objects: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.objects)


@dataclass(frozen=True)
class ObjectFinding:
    """The state of one object.

    Attributes:
        object: Its name.
        kind: Its kind.
        size: Its bytes.
        rows: Number of its rows, None if it is unknown.
        state: `ok`, `missing`, `damaged`, `contradictory` or `unknown`.
        problem: A description of the problem; empty if there is none.
    """

    object: str
    kind: str
    size: int
    rows: int | None
    state: str
    problem: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it needs repair."""
        return self.state not in (OK, UNKNOWN)


def verify_manifest(store: Store, manifest: Manifest) -> Iterator[ObjectFinding]:
    """Read every object of a manifest completely and check it."""
    details: dict[str, tuple[int, str]] = {}
    for block in manifest.blocks:
        yield from _verify_block(store, block, details)
    yield from _verify_details(store, details)
    for snapshot in manifest.snapshots:
        yield from _verify_snapshot(store, snapshot)
    for ref in manifest.nodes:
        finding, _ = _read(store, ref)
        yield finding


def find_damage(store: Store, manifest: Manifest) -> Damage:
    """Read every object of a manifest completely and find those that need repair."""
    kinds = {finding.object: finding.kind for finding in verify_manifest(store, manifest) if finding.is_wrong}
    if not kinds:
        return Damage()
    blocks = set()
    zones = set()
    for block in manifest.blocks:
        kinds_of_block = {kinds[name] for name in _name_wrong_objects(store, block, kinds)}
        if kinds_of_block == {"zones"}:
            zones.add(block.id)
        elif kinds_of_block:
            blocks.add(block.id)
    return Damage(frozenset(kinds), frozenset(blocks), frozenset(zones))


def _name_wrong_objects(store: Store, block: Block, wrong: Collection[str]) -> set[str]:
    """Name the wrong objects of a block; without its details if its list of files is wrong itself."""
    names = {ref.name for ref in iterate_objects(block)}
    if block.files.name not in wrong:
        files = store.get(block.files)
        for kind in DETAILS:
            names.update(name for name, _, _ in list_detail_objects(files, kind))
    return names.intersection(wrong)


def _verify_details(store: Store, details: Mapping[str, tuple[int, str]]) -> Iterator[ObjectFinding]:
    for name, (length, digest) in sorted(details.items()):
        yield _verify_detail(store, name, length, digest)


def _verify_block(store: Store, block: Block, details: dict[str, tuple[int, str]]) -> Iterator[ObjectFinding]:
    """Verify the objects that a block names; those of details are added to `details`, with length and digest."""
    finding, files = _verify_file_list(store, block)
    if files is not None:
        _collect_details(files, details)
    yield finding
    can_check_zones = bool(block.zones) and files is not None
    expected_zones = []
    for ref in block.summary:
        finding, rows = _verify_summary(store, block, ref, files)
        if finding.state != OK:
            can_check_zones = False
        if can_check_zones:
            expected_zones.append(build_zones(rows, block.columns, read_row_counts(files)))
        yield finding
    for ref in block.zones:
        finding, rows = _read(store, ref.object)
        if rows is not None and can_check_zones:
            finding = _add_problems(finding, check_zones(rows, expected_zones))
        yield finding


def _collect_details(files: pa.Table, details: dict[str, tuple[int, str]]) -> None:
    for kind in DETAILS:
        for name, length, digest in list_detail_objects(files, kind):
            details[name] = (length, digest)


def _verify_summary(
    store: Store, block: Block, ref: SummaryRef, files: pa.Table | None
) -> tuple[ObjectFinding, pa.Table | None]:
    finding, rows = _read(store, ref.object)
    if rows is not None:
        finding = _add_problems(finding, check_statistics(rows, block.columns, ref.columns, files))
    return finding, rows


def _verify_file_list(store: Store, block: Block) -> tuple[ObjectFinding, pa.Table | None]:
    finding, files = _read(store, block.files)
    if files is None:
        return replace(finding, problem=f"{finding.problem}; what it lists cannot be checked"), None
    finding = _add_problems(finding, check_file_list(files))
    if block.zones and finding.state == OK:
        footer = read_footer(block.files.name, store.read_bytes(block.files.name))
        finding = _add_problems(finding, check_identities(footer.texts.get(IDENTITIES_KEY), files))
    return finding, files


def _verify_snapshot(store: Store, snapshot: Snapshot) -> Iterator[ObjectFinding]:
    for ref in iterate_objects(snapshot):
        finding, rows = _read(store, ref)
        if rows is not None:
            finding = _add_problems(finding, _check_snapshot_rows(ref.kind, rows, snapshot))
        yield finding


def _check_snapshot_rows(kind: str, rows: pa.Table, snapshot: Snapshot) -> list[str]:
    if kind == "table-files":
        return check_snapshot(rows, snapshot)
    if kind == "table-summary":
        columns = snapshot.described
        return check_statistics(rows, columns, range(len(columns)), None)
    return []


def _read(store: Store, ref: ObjectRef) -> tuple[ObjectFinding, pa.Table | None]:
    """Verify an object that is named with all its digests, and return its rows if they are sound."""
    finding = ObjectFinding(ref.name, ref.kind, ref.length, ref.rows, OK)
    try:
        data = store.read_bytes(ref.name, ref.length)
    except DamagedObject as damage:
        return _mark_unreadable(finding, damage), None
    try:
        if ref.kind not in SCHEMAS:
            check_bytes(ref, data)
            return replace(finding, state=UNKNOWN, problem=LATER), None
        rows = decode_object(ref, data)
        _check_footer(ref, data)
    except DamagedObject as damage:
        return replace(finding, state=DAMAGED, problem=damage.reason), None
    return finding, rows


def _verify_detail(store: Store, name: str, length: int, digest: str) -> ObjectFinding:
    """Verify an object that rows of `files` name by its name, which is made of its bytes, and by its digest there."""
    kind = name.rsplit("-", 5)[0]
    finding = ObjectFinding(name, kind, length, None, OK)
    try:
        data = store.read_bytes(name, length or MAX_OBJECT_BYTES)  # rows of damaged lists may not have the length
    except DamagedObject as damage:
        return _mark_unreadable(finding, damage)
    try:
        ref, _ = identify_object(name, data)
        decode_object(ref, data)
        _check_footer(ref, data)
    except DamagedObject as damage:
        return replace(finding, state=DAMAGED, problem=damage.reason)
    finding = replace(finding, rows=ref.rows)
    if (ref.length, ref.sha256) != (length, digest):
        return replace(finding, state=DAMAGED, problem="it is not the one that its block names")
    return finding


def _check_footer(ref: ObjectRef, data: bytes) -> None:
    """Check the parts of a footer that only partial reads use: the object may be sound and its footer not."""
    footer = verify_chunks(ref, data)
    if footer.texts.get(KIND_KEY) != ref.kind:
        raise DamagedObject(ref.name, "its footer names another kind")
    names = footer.metadata.schema.to_arrow_schema().names
    for field in SCHEMAS[ref.kind]:
        if not field.nullable and field.name not in names:
            raise DamagedObject(ref.name, f"it has no column {field.name}")


def _mark_unreadable(finding: ObjectFinding, damage: DamagedObject) -> ObjectFinding:
    state = MISSING if damage.reason.startswith("it is missing") else DAMAGED
    return replace(finding, state=state, problem=damage.reason)


def _add_problems(finding: ObjectFinding, problems: list[str]) -> ObjectFinding:
    if not problems:
        return finding
    return replace(finding, state=CONTRADICTORY, problem="; ".join(problems))


_UNNAMED = "it is not known whether a damaged list of data files names it"


def list_unchecked(store: Store, checked: Sequence[ObjectFinding]) -> Iterator[ObjectFinding]:
    """List the entries in the folders of a store that are neither checked nor garbage for `gc`."""
    stored = store.list_entries()
    checked_names = {finding.object for finding in checked}
    may_be_named = any(finding.kind == "files" and finding.is_wrong for finding in checked)
    log_problems = _find_log_problems(store, stored)
    for path, size_or_kind in sorted(stored.items()):
        name = path.removeprefix("objects/")
        if isinstance(size_or_kind, int):
            finding = _describe_unchecked(path, size_or_kind, checked_names, log_problems)
            if finding.problem and (may_be_named or finding.problem is not _UNNAMED):
                yield finding
        elif name not in checked_names:
            yield ObjectFinding(name, "", 0, None, UNKNOWN, problem=f"it is {size_or_kind}: only plain files are read")


def _describe_unchecked(
    path: str, size: int, checked_names: set[str], log_problems: Mapping[str, str]
) -> ObjectFinding:
    """Describe a plain file; without a problem if it was checked, is a leftover or a manifest."""
    finding = ObjectFinding(path.removeprefix("objects/"), "", size, None, UNKNOWN)
    if is_leftover(path):
        return finding
    if path.startswith("log/"):
        return replace(finding, problem=log_problems.get(path, ""))
    try:
        kind = object_kind(finding.object)
    except DamagedObject:
        return replace(finding, problem="no object has this name")
    if finding.object in checked_names:
        return finding
    return replace(finding, kind=kind, problem=_UNNAMED if kind in SCHEMAS else LATER)


def _find_log_problems(store: Store, paths: Iterable[str]) -> dict[str, str]:
    """Find the reasons why readers pass over entries of the log, by their paths."""
    names = [path.removeprefix("log/") for path in paths if path.startswith("log/")]
    numbers = {name: number for number, name in commit_log.parse_log_names(names).items()}
    head = store.run(commit_log.find_head())
    used = head.manifest.sequence if head.manifest else 0
    problems = {}
    for name in names:
        if name not in numbers:
            problems[f"log/{name}"] = "no manifest has this name"
        elif numbers[name] > used:
            problems[f"log/{name}"] = f"it is not a whole manifest: {used} is used"
    return problems
