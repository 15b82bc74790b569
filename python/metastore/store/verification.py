"""Verification: every object that a manifest names is present, has its digest, and does not contradict itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from metastore.errors import DamagedObject
from metastore.format.data_files import list_detail_references
from metastore.format.manifest import iterate_objects
from metastore.format.object_schemas import SCHEMAS
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef
    from metastore.format.objects import ObjectRef
    from metastore.store.table_store import Store


OK = "ok"
MISSING = "missing"
DAMAGED = "damaged"
CONTRADICTORY = "contradictory"
UNKNOWN = "unknown"
"""The state of entries that readers ignore, such as objects of a later version; they are no damage."""
LATER = "a later version writes objects of this kind; this one passes over it"


@dataclass(frozen=True)
class Damage:
    """The objects of a manifest that are missing, damaged or contradictory.

    Attributes:
        objects: Their names.
        blocks: Ids of blocks with such an object other than zones.
        zones: Ids of blocks of which only zones are damaged: these can be computed again from summaries.
    """

    objects: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether anything is wrong."""
        return bool(self.objects)


@dataclass(frozen=True, kw_only=True)
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
    details: set[ObjectRef] = set()
    for block in manifest.blocks:
        yield from _verify_block(store, block, details)
    for detail in sorted(details, key=attrgetter("name")):
        yield _verify_detail(store, detail)
    for snapshot in manifest.snapshots:
        yield from _verify_snapshot(store, snapshot)
    for ref in manifest.nodes:
        yield _read(store, ref).finding


def find_damage(store: Store, manifest: Manifest) -> Damage:
    """Read every object of a manifest completely and find those that need repair."""
    kinds = {finding.object: finding.kind for finding in verify_manifest(store, manifest) if finding.is_wrong}
    if not kinds:
        return Damage()
    blocks = set()
    zones = set()
    for block in manifest.blocks:
        kinds_of_block = _list_wrong_kinds(store, block, kinds)
        if kinds_of_block == {"zones"}:
            zones.add(block.id)
        elif kinds_of_block:
            blocks.add(block.id)
    return Damage(frozenset(kinds), frozenset(blocks), frozenset(zones))


def _list_wrong_kinds(store: Store, block: Block, wrong: Mapping[str, str]) -> set[str]:
    """List the kinds of a block's damaged objects; details are unknown if its list of files is damaged."""
    objects = [*iterate_objects(block)]
    if block.files.name not in wrong:
        objects += list_detail_references(store.get(block.files))
    return {wrong[stored.name] for stored in objects if stored.name in wrong}


class _VerifiedObject(NamedTuple):
    """An object that was read.

    Attributes:
        finding: Its state.
        rows: Its rows; None if they cannot be decoded.
    """

    finding: ObjectFinding
    rows: pa.Table | None = None

    def check(self, find_problems: Callable[[pa.Table], list[str]]) -> _VerifiedObject:
        """Look for contradictions in the rows, if there are rows."""
        problems = [] if self.rows is None else find_problems(self.rows)
        if not problems:
            return self
        finding = replace(self.finding, state=CONTRADICTORY, problem="; ".join(problems))
        return _VerifiedObject(finding, self.rows)


def _verify_block(store: Store, block: Block, details: set[ObjectRef]) -> Iterator[ObjectFinding]:
    """Verify the objects that a block names, except detail objects, which are added to `details`."""
    listed = _verify_file_list(store, block)
    yield listed.finding
    files = listed.rows
    if files is not None:
        details |= list_detail_references(files)
    can_check_zones = files is not None
    expected_zones = []
    for ref in block.summary:
        summary = _verify_summary(store, block, ref, files)
        yield summary.finding
        can_check_zones &= summary.finding.state == OK
        if block.zones and can_check_zones:
            expected_zones.append(build_zones(summary.rows, block.columns, read_row_counts(files)))
    yield from _verify_zones(store, block, expected_zones if can_check_zones else None)


def _verify_zones(store: Store, block: Block, expected: Sequence[pa.Table] | None) -> Iterator[ObjectFinding]:
    """Verify the zones of a block; their content is only checked if the expected zones are known."""
    for ref in block.zones:
        zones = _read(store, ref.object)
        if expected is not None:
            zones = zones.check(partial(check_zones, expected=expected))
        yield zones.finding


def _verify_summary(store: Store, block: Block, ref: SummaryRef, files: pa.Table | None) -> _VerifiedObject:
    find_problems = partial(check_statistics, columns=block.columns, ordinals=ref.columns, files=files)
    return _read(store, ref.object).check(find_problems)


def _verify_file_list(store: Store, block: Block) -> _VerifiedObject:
    listed = _read(store, block.files)
    if listed.rows is None:
        problem = f"{listed.finding.problem}; what it lists cannot be checked"
        return _VerifiedObject(replace(listed.finding, problem=problem))
    listed = listed.check(check_file_list)
    if block.zones and listed.finding.state == OK:
        footer = read_footer(block.files.name, store.read_bytes(block.files.name))
        identities = footer.texts.get(IDENTITIES_KEY)
        listed = listed.check(partial(check_identities, identities))
    return listed


def _verify_snapshot(store: Store, snapshot: Snapshot) -> Iterator[ObjectFinding]:
    for ref in iterate_objects(snapshot):
        find_problems = partial(_check_snapshot_rows, ref.kind, snapshot)
        yield _read(store, ref).check(find_problems).finding


def _check_snapshot_rows(kind: str, snapshot: Snapshot, rows: pa.Table) -> list[str]:
    if kind == "table-files":
        return check_snapshot(rows, snapshot)
    if kind == "table-summary":
        columns = snapshot.described
        return check_statistics(rows, columns, range(len(columns)), None)
    return []


def _read(store: Store, ref: ObjectRef) -> _VerifiedObject:
    """Verify an object by a complete reference."""
    finding = ObjectFinding(object=ref.name, kind=ref.kind, size=ref.length, rows=ref.rows, state=OK)
    try:
        data = store.read_bytes(ref.name, ref.length)
        if ref.kind not in SCHEMAS:
            check_bytes(ref, data)
            return _VerifiedObject(replace(finding, state=UNKNOWN, problem=LATER))
        rows = decode_object(ref, data)
        _check_footer(ref, data)
    except DamagedObject as damage:
        return _VerifiedObject(_mark_wrong(finding, damage))
    return _VerifiedObject(finding, rows)


def _verify_detail(store: Store, detail: ObjectRef) -> ObjectFinding:
    """Verify a detail object by its name, which depends on its bytes, and by its digest in rows of `files`."""
    kind = detail.name.rsplit("-", 5)[0]
    finding = ObjectFinding(object=detail.name, kind=kind, size=detail.length, rows=None, state=OK)
    try:
        data = store.read_bytes(detail.name, detail.length or MAX_OBJECT_BYTES)
        ref, _ = identify_object(detail.name, data)
        decode_object(ref, data)
        _check_footer(ref, data)
    except DamagedObject as damage:
        return _mark_wrong(finding, damage)
    finding = replace(finding, rows=ref.rows)
    if (ref.length, ref.sha256) != (detail.length, detail.sha256):
        return replace(finding, state=DAMAGED, problem="it is not the one that its block names")
    return finding


def _check_footer(ref: ObjectRef, data: bytes) -> None:
    """Check the parts of a footer that only partial reads use: reading the whole object does not check them."""
    footer = verify_chunks(ref, data)
    if footer.texts.get(KIND_KEY) != ref.kind:
        raise DamagedObject(ref.name, "its footer names another kind")
    names = footer.metadata.schema.to_arrow_schema().names
    for field in SCHEMAS[ref.kind]:
        if not field.nullable and field.name not in names:
            raise DamagedObject(ref.name, f"it has no column {field.name}")


def _mark_wrong(finding: ObjectFinding, damage: DamagedObject) -> ObjectFinding:
    state = MISSING if damage.reason.startswith("it is missing") else DAMAGED
    return replace(finding, state=state, problem=damage.reason)


_UNNAMED = "it is not known whether a damaged list of data files names it"


def list_unchecked(store: Store, checked: Sequence[ObjectFinding]) -> Iterator[ObjectFinding]:
    """List the entries in the folders of a store that are neither checked nor garbage for `gc`."""
    stored = store.list_entries()
    checked_names = {finding.object for finding in checked}
    log_problems = _find_log_problems(store, stored)
    passed_over = {""}
    if not _has_unknown_names(checked):
        passed_over.add(_UNNAMED)
    for path, size_or_kind in sorted(stored.items()):
        finding = _describe_entry(path, size_or_kind, checked_names, log_problems)
        if finding.problem not in passed_over:
            yield finding


def _has_unknown_names(checked: Sequence[ObjectFinding]) -> bool:
    """Return whether a list of data files is wrong: it may name further objects."""
    return any(finding.kind == "files" and finding.is_wrong for finding in checked)


def _describe_entry(
    path: str, size_or_kind: int | str, checked_names: set[str], log_problems: Mapping[str, str]
) -> ObjectFinding:
    """Describe a plain file by its size, or another entry by its kind."""
    if isinstance(size_or_kind, int):
        return _describe_unchecked(path, size_or_kind, checked_names, log_problems)
    return _describe_odd_entry(path, size_or_kind, checked_names)


def _describe_odd_entry(path: str, kind: str, checked_names: set[str]) -> ObjectFinding:
    """Describe an entry that is no plain file; without a problem if it was checked."""
    name = path.removeprefix("objects/")
    problem = "" if name in checked_names else f"it is {kind}: only plain files are read"
    return ObjectFinding(object=name, kind="", size=0, rows=None, state=UNKNOWN, problem=problem)


def _describe_unchecked(
    path: str, size: int, checked_names: set[str], log_problems: Mapping[str, str]
) -> ObjectFinding:
    """Describe a plain file; without a problem if it was checked, is a leftover or a manifest."""
    finding = ObjectFinding(object=path.removeprefix("objects/"), kind="", size=size, rows=None, state=UNKNOWN)
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
    paths_by_name = {path.removeprefix("log/"): path for path in paths if path.startswith("log/")}
    problems = dict.fromkeys(paths_by_name.values(), "no manifest has this name")
    head = store.run(commit_log.find_head())
    used = head.manifest.sequence if head.manifest else 0
    for number, name in commit_log.parse_log_names(paths_by_name).items():
        problem = "" if number <= used else f"it is not a whole manifest: {used} is used"
        problems[paths_by_name[name]] = problem
    return problems
