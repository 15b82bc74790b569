"""What lies in a store and is not checked, for readers pass over it: `verify` says of each why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore._format.objects import object_kind
from metastore._format.schemas import SCHEMAS
from metastore._store import protocol
from metastore._store.collect import is_leftover
from metastore._store.verify import LATER, UNKNOWN, ObjectFinding
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore._store.store import Store

_UNNAMED = "it is not known whether a damaged list of data files names it"


def list_unchecked(store: Store, checked: Sequence[ObjectFinding]) -> Iterator[ObjectFinding]:
    """One finding for each thing in the folders of a store that is neither checked nor what `gc` is there for."""
    stored = store.entries()
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
    numbered = protocol.parse_log_names(names)
    head = store.run(protocol.find_head())
    used = head.manifest.sequence if head.manifest else 0
    other = {f"log/{name}": "no manifest has this name" for name in names if name not in numbered.values()}
    damaged = {f"log/{name}": f"it is no whole manifest: {used} is used" for n, name in numbered.items() if n > used}
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
