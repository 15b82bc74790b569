"""Keeping a store in order: what is damaged, what nobody needs, what can be smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.answers import Answer
from metastore.errors import NoStatistics
from metastore.store import retention
from metastore.store.compaction import compact_store
from metastore.store.verification import list_unchecked
from metastore.store.verification import verify_manifest as verify_store

if TYPE_CHECKING:
    from metastore.format.manifest import Manifest
    from metastore.reading.discovery import Discovery
    from metastore.store import Store


_VERIFIED = ("object", "kind", "size", "rows", "state", "problem")
_GARBAGE = ("path", "size", "age_days", "deleted")
_SECONDS_A_DAY = 86_400


def report_verification(place: Discovery) -> Answer:
    """One row per object that the newest manifest names, what is wrong first, and per thing that is passed over."""
    store, manifest = _found(place)
    checked = list(verify_store(store, manifest))
    found = sorted([*checked, *list_unchecked(store, checked)], key=lambda finding: not finding.is_wrong)
    rows = [vars(finding) for finding in found]
    return Answer("verify", place.asked, _VERIFIED, tuple(rows))


def report_garbage(place: Discovery, *, delete: bool, grace_days: float) -> Answer:
    """One row per stored file that nobody needs, deleted if that was asked for."""
    if place.store is None:
        raise NoStatistics(place.asked)
    grace = grace_days * _SECONDS_A_DAY
    store = place.store
    garbage = (
        store.writable().run(retention.collect_garbage(grace)) if delete else store.run(retention.find_garbage(grace))
    )
    rows = (
        {"path": blob.path, "size": blob.size, "age_days": round(blob.age / _SECONDS_A_DAY, 1), "deleted": delete}
        for blob in garbage.blobs
    )
    return Answer("gc", place.asked, _GARBAGE, tuple(rows))


def report_compaction(place: Discovery) -> dict[str, Any]:
    """What a compaction did, in numbers: before and after."""
    store, _ = _found(place)
    done = compact_store(store.writable())
    before, after = _numbers(done.before), _numbers(done.after)
    counts = {
        f"{name}_{when}": found[name] for name in before for when, found in (("before", before), ("after", after))
    }
    return {"subject": place.asked, "committed": done.after != done.before, **counts}


def _numbers(manifest: Manifest) -> dict[str, int]:
    return {
        "blocks": len(manifest.blocks),
        "files": sum(block.files.rows for block in manifest.blocks),
        "bytes": sum(
            block.files.length + sum(part.object.length for part in block.summary) for block in manifest.blocks
        ),
    }


def _found(place: Discovery) -> tuple[Store, Manifest]:
    if place.store is None or place.manifest is None:
        raise NoStatistics(place.asked)
    return place.store, place.manifest
