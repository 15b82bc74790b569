"""Finds the objects with the details of a column, of a table or of one of its data files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from metastore.format.data_files import find_detail_files
from metastore.reading.column_details import ColumnDetails, read_first_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.format.manifest import Block, Snapshot
    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store


_SUMMARY_FIELDS = (
    "column",
    "rows",
    "nulls",
    "nans",
    "negative_infinities",
    "positive_infinities",
    "distinct",
    "files",
    "lo_exact",
    "hi_exact",
    "frequencies",
)


def read_table_details(store: Store, snapshot: Snapshot, column: Column) -> ColumnDetails | None:
    """Read the details of a column of the table, or None if it has no statistics."""
    ordinal = snapshot.find_ordinal(column)
    if snapshot.summary is None or ordinal is None:
        return None
    summary = _read_summary(store.open_part(snapshot.summary), column, ordinal)
    if summary is None:
        return None
    frequencies = snapshot.frequencies
    lists = [ref.object for ref in frequencies if ordinal in ref.columns]
    is_indexed = ordinal in snapshot.distribution
    return ColumnDetails(
        store=store,
        column=column,
        summary=summary,
        ordinal=ordinal,
        heads=frequencies[0].object if frequencies else None,
        lists=tuple(lists),
        histograms=snapshot.histograms,
        table_files=snapshot.table_files if is_indexed else None,
    )


def _read_summary(part: ObjectPart, column: Column, ordinal: int) -> dict[str, Any] | None:
    """Return the column's row of the summary, or None."""
    names = list(_SUMMARY_FIELDS)
    if column.encoding is not None:
        names += [f"lo_{column.encoding}", f"hi_{column.encoding}", f"percentiles_{column.encoding}"]
    rows = part.read_rows(part.groups_of_column(ordinal), names)
    return read_first_row(rows.filter(pc.equal(rows["column"], ordinal)))


def make_empty_details(store: Store, column: Column) -> ColumnDetails:
    """Make the details of a column of a table without rows."""
    summary = {"rows": 0, "nulls": 0, "nans": 0, "files": 0, "frequencies": "complete"}
    return ColumnDetails(store=store, column=column, summary=summary, ordinal=-1)


def read_file_details(
    store: Store, stored: SnapshotFiles, summary: Mapping[str, Any], file: int, column: Column
) -> ColumnDetails:
    """Read the details of a column in one data file from the first block that has both."""
    details = ColumnDetails(store=store, column=column, summary=summary, ordinal=0, file=0)
    for files, ordinal in stored.sources(column):
        number = files.find_file(file)
        if number is not None:
            objects = list_detail_objects(store, files.block, number)
            return _add_objects(replace(details, ordinal=ordinal), objects)
    return details


def _add_objects(details: ColumnDetails, objects: Mapping[str, DetailObject]) -> ColumnDetails:
    """Add the objects with a data file's details; the histogram is dropped if it has another number for the file."""
    lists = objects.get("frequencies")
    histograms = objects.get("histograms")
    if histograms is not None:
        details = replace(details, file=histograms.file, histograms=histograms.ref)
    if lists is None:
        return details
    if lists.file != details.file:
        details = replace(details, histograms=None)
    return replace(details, file=lists.file, heads=lists.ref, lists=(lists.ref,))


@dataclass(frozen=True)
class DetailObject:
    """An object with details of a data file.

    Attributes:
        file: The data file's number in the object.
    """

    ref: ObjectRef
    file: int


def list_detail_objects(store: Store, block: Block, file: int) -> dict[str, DetailObject]:
    """List the objects with details of a data file of a block, by their kind."""
    files = store.get(block.files)
    row = files.filter(pc.equal(files["file"], file))
    objects = {}
    for kind in ("frequencies", "histograms"):
        for detail in find_detail_files(row, kind):
            objects[kind] = DetailObject(detail.ref, int(detail.inside[0]))
    return objects
