"""Details of columns in a summary: most frequent values, percentiles, and the errors of quartiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from metastore.format.histogram_bins import Histogram, compute_percentiles, find_quantiles
from metastore.format.object_schemas import HISTOGRAMS
from metastore.reading.column_details import restore_histogram
from metastore.reading.detail_objects import DetailObject, list_detail_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store

    TopValue = tuple[Any, int]
    """A value and its frequency."""


_VALUE_FIELDS = ("value_long", "value_double", "value_binary")


def measure_rank_errors(store: Store, snapshot: Snapshot, shares: Sequence[float]) -> dict[str, float | None]:
    """Compute the largest error of the ranks of quantiles, as a share of the column's values.

    Returns:
        The largest error by the column's key, or None if unknown.
    """
    if snapshot.summary is None or snapshot.histograms is None:
        return {}
    summaries = {row["column"]: row for row in store.get(snapshot.summary).to_pylist()}
    errors: dict[str, float | None] = {}
    for row in store.get(snapshot.histograms).to_pylist():
        summary = summaries.get(row["column"], {})
        if summary.get("files") != snapshot.files_total:
            continue
        column = snapshot.described[row["column"]]
        histogram = restore_histogram(column, summary, row)
        if histogram is not None:
            errors[column.key] = _measure_rank_error(histogram, shares, str(column.encoding))
    return errors


def _measure_rank_error(histogram: Histogram, shares: Sequence[float], encoding: str) -> float | None:
    """Return the largest error of the ranks as a share of the values, or None if unknown."""
    number = histogram.number
    ranks = [max(1, math.ceil(share * number)) for share in shares]
    largest = 0
    for quantile in find_quantiles(histogram, ranks, encoding):
        if quantile.error is None:
            return None
        largest = max(largest, quantile.error)
    return largest / number


def read_table_tops(store: Store, snapshot: Snapshot) -> dict[int, TopValue]:
    """Read the most frequent value of every column that has a list, by the column's ordinal."""
    if not snapshot.frequencies:
        return {}
    part = store.open_part(snapshot.frequencies[0].object)
    return _take_tops(part.read_rows([0], ["column", *_VALUE_FIELDS, "frequency"]))


def read_file_tops(store: Store, stored: SnapshotFiles, file: int) -> dict[str, TopValue]:
    """Read the most frequent value of every column in a data file, by the column's key."""
    tops: dict[str, TopValue] = {}
    for block in _iterate_blocks(store, stored, file, "frequencies"):
        part = store.open_part(block.object.ref)
        rows = part.read_rows([0], ["column", "file", *_VALUE_FIELDS, "frequency"])
        rows = rows.filter(pc.equal(rows["file"], block.object.file))
        for ordinal, top in _take_tops(rows).items():
            tops.setdefault(block.columns[ordinal].key, top)
    return tops


def _take_tops(rows: pa.Table) -> dict[int, TopValue]:
    """Return the first value of each column."""
    columns, first_rows = np.unique(rows["column"].to_numpy(), return_index=True)
    tops = {}
    # `rows.take` is avoided: for its array of indices Arrow would import pandas, which takes half a second.
    for column, number in zip(columns.tolist(), first_rows.tolist(), strict=True):
        (row,) = rows.slice(number, 1).to_pylist()
        value = next(row[name] for name in _VALUE_FIELDS if row[name] is not None)
        tops[column] = (value, row["frequency"])
    return tops


def read_file_percentiles(
    store: Store, stored: SnapshotFiles, file: int, columns: Mapping[str, tuple[Column, Mapping[str, Any]]]
) -> dict[str, list[Any]]:
    """Compute percentiles of columns of a data file from their histograms.

    Args:
        store: The store.
        stored: The data files.
        file: The data file's number.
        columns: The columns and their rows of the summary, by key.

    Returns:
        The percentiles by key.
    """
    percentiles: dict[str, list[Any]] = {}
    for block in _iterate_blocks(store, stored, file, "histograms"):
        part = store.open_part(block.object.ref)
        rows = part.read_rows(range(part.groups), HISTOGRAMS.names)
        for row in rows.filter(pc.equal(rows["file"], block.object.file)).to_pylist():
            key = block.columns[row["column"]].key
            if key in percentiles or key not in columns:
                continue
            column, summary = columns[key]
            histogram = restore_histogram(column, summary, row)
            if histogram is not None:
                percentiles[key] = compute_percentiles(histogram, str(column.encoding))
    return percentiles


@dataclass(frozen=True)
class _BlockDetails:
    """Details of a data file in one block.

    Attributes:
        columns: The columns whose positions the object contains.
    """

    columns: Sequence[Column]
    object: DetailObject


def _iterate_blocks(store: Store, stored: SnapshotFiles, file: int, kind: str) -> Iterator[_BlockDetails]:
    """Yield the blocks that have details of a data file, in order of preference."""
    for files in stored.covered:
        number = files.find_file(file)
        if number is None:
            continue
        objects = list_detail_objects(store, files.block, number)
        if kind in objects:
            yield _BlockDetails(files.block.columns, objects[kind])
