"""Public functions that keep a store in order: by table name with Spark, by location without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.answers import Answer
from metastore.errors import InvalidArgument
from metastore.reading.discovery import Discovery, discover
from metastore.spark.discovery_by_name import discover_by_name
from metastore.spark.session import check_session
from metastore.store.compaction import compact_store
from metastore.store.verification import list_unchecked, verify_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.format.manifest import Manifest
    from metastore.store import Store


_VERIFIED = ("object", "kind", "size", "rows", "state", "problem")
_GARBAGE = ("path", "size", "age_days", "deleted")
_SECONDS_A_DAY = 86_400


def verify(where: SparkSession | str, table: str | None = None) -> Answer:
    """Reads all statistics of a table and checks them: one row per object, what is wrong first.

    An object is `missing`, `damaged` (its bytes are not those that were written) or `contradictory` (it says what
    cannot be true of any data file): `metastore analyze TABLE --repair`, or `metastore.analyze(spark, table,
    repair=True)`, mends all of that. What readers pass over is `unknown`, and `problem` says why: objects of a later
    version, names that a store does not give, what is no plain file, a newest manifest that is not whole, objects that
    only a damaged list of data files can name. What no manifest needs any more is not read: that is for `gc`.
    Whatever is wrong, queries keep their answers: such statistics are not used.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: There are none.
        StoreNotReadable: The store does not answer.

    Example:
        >>> {row["state"] for row in metastore.verify(spark, "db.sales")}  # doctest: +SKIP
        {'ok'}
    """
    discovery = _discover(where, table)
    store, manifest = _require_statistics(discovery)
    checked = list(verify_manifest(store, manifest))
    findings = [*checked, *list_unchecked(store, checked)]
    findings.sort(key=lambda finding: not finding.is_wrong)
    return Answer(
        kind="verify", subject=discovery.subject, columns=_VERIFIED, rows=tuple(vars(finding) for finding in findings)
    )


def gc(where: SparkSession | str, table: str | None = None, *, delete: bool = False, grace_days: float = 7) -> Answer:
    """Finds what nobody needs in a store, and deletes it on demand: one row per stored file.

    What the newest manifests name is needed, and whatever a manifest names that was replaced within the grace period.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.
        delete: Whether to delete; otherwise nothing is changed, but for a mark that is written and removed to read the
            store's clock. Who may not write is told ages by the clock of this machine.
        grace_days: How long something must have been out of use: longer than any ANALYZE or query takes.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: There is no store.
        CollectionRefused: A manifest cannot be read, so that it is not certain what is needed; nothing is deleted.
        StoreNotWritable: The store refuses.

    Example:
        >>> len(metastore.gc(spark, "db.sales"))  # doctest: +SKIP
        12
    """
    discovery = _discover(where, table)
    store = discovery.store
    if store is None:
        raise discovery.explain_missing()
    grace = grace_days * _SECONDS_A_DAY
    searched = store.writable() if delete else store
    garbage = searched.find_garbage(grace, delete=delete)
    rows = []
    for blob in garbage.blobs:
        age_days = round(blob.age / _SECONDS_A_DAY, 1)
        rows.append({"path": blob.path, "size": blob.size, "age_days": age_days, "deleted": delete})
    return Answer(kind="gc", subject=discovery.subject, columns=_GARBAGE, rows=tuple(rows))


def compact(where: SparkSession | str, table: str | None = None) -> dict[str, Any]:
    """Merges the statistics of a table into as few objects as possible, without data files that left the table.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.

    Returns:
        Blocks, data files and bytes before and after, and whether something was committed.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: There are none.
        StoreNotWritable: The store refuses.

    Example:
        >>> metastore.compact("/warehouse/db/sales")["blocks_after"]  # doctest: +SKIP
        1
    """
    discovery = _discover(where, table)
    store, _ = _require_statistics(discovery)
    compaction = compact_store(store.writable())
    before = _measure(compaction.before)
    after = _measure(compaction.after)
    result: dict[str, Any] = {"subject": discovery.subject, "committed": compaction.after != compaction.before}
    for name in before:
        result[f"{name}_before"] = before[name]
        result[f"{name}_after"] = after[name]
    return result


def _measure(manifest: Manifest) -> dict[str, int]:
    files = size = 0
    for block in manifest.blocks:
        files += block.files.rows
        size += block.files.length
        size += sum(part.object.length for part in block.summary)
    return {"blocks": len(manifest.blocks), "files": files, "bytes": size}


def _require_statistics(discovery: Discovery) -> tuple[Store, Manifest]:
    if discovery.store is None or discovery.manifest is None:
        raise discovery.explain_missing()
    return discovery.store, discovery.manifest


def _discover(where: SparkSession | str, table: str | None) -> Discovery:
    if isinstance(where, str):
        return discover(where, table)
    check_session(where)
    if table is None:
        raise InvalidArgument("table", "no table is named", 'Say metastore.verify(spark, "db.t").')
    return discover_by_name(where, table)
