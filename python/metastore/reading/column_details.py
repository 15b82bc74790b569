"""Value lists and histograms of one column, of a table or of one of its data files: where they are, and their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.data_files import find_detail_files
from metastore.format.histogram_bins import (
    EQUI_HEIGHT,
    Histogram,
    compute_percentiles,
    find_quantiles,
    percentile_ranks,
    restore_bins,
)
from metastore.format.object_layout import HEADS
from metastore.format.object_schemas import HISTOGRAMS
from metastore.format.table_column import Column, is_compatible
from metastore.format.value_postings import POSTING_COLUMNS, read_postings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.format.manifest import Block, Snapshot
    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store


_LISTED = ("none", None)


@dataclass(frozen=True)
class ColumnDetails:
    """What is kept of a column beside its summary.

    Attributes:
        summary: Its row of the summary.
        ordinal: Its place in the objects.
        file: The data file's place in them; None for the table.
        heads: The object of which row group 0 has its most frequent values.
        lists: The objects with all of its listed values.
        histograms: The object with its histogram.
        table_files: The object that lists the data files, where lists of the table tell where each value lives.
    """

    store: Store
    column: Column
    summary: Mapping[str, Any]
    ordinal: int
    file: int | None
    heads: ObjectRef | None
    lists: tuple[ObjectRef, ...]
    histograms: ObjectRef | None
    table_files: ObjectRef | None = None

    def read_value_files(self) -> list[dict[str, int] | None]:
        """For each listed value how often it occurs in each data file that holds it; None where that is not known."""
        rows = (
            self.read_value_list(None, POSTING_COLUMNS) if self.table_files is not None else self.read_value_list(None)
        )
        found: list[dict[str, int] | None] = [None] * rows.num_rows
        if self.table_files is None or not rows.num_rows:
            return found
        paths = self.store.get(self.table_files, ["path"])["path"].to_pylist()
        for row, file, number in zip(*(part.tolist() for part in read_postings(rows)), strict=True):
            if number:
                found[row] = {**(found[row] or {}), paths[file]: number}
        return found

    @property
    def value_count(self) -> int | None:
        """How many values there are, null excluded."""
        rows, nulls = self.summary.get("rows"), self.summary.get("nulls")
        return None if rows is None or nulls is None else rows - nulls

    @property
    def has_value_list(self) -> bool:
        """Whether there is a list of values, be it empty."""
        return self.summary.get("frequencies") not in _LISTED

    def read_value_list(self, top: int | None, more: Sequence[str] = ()) -> pa.Table:
        """The most frequent values: `value`, `frequency`, `error`."""
        few = top is not None and top <= HEADS
        refs = () if not self.has_value_list else (self.heads,) if few else self.lists
        parts = [self._listed(ref, top, more) for ref in refs if ref is not None]
        if not parts:
            return pa.table({name: pa.array([], pa.int64()) for name in ("value", "frequency", "error")})
        if len(parts) > 1 or not (few or self._is_ranked):
            whole = pa.concat_tables(parts)
            return whole.take(pc.sort_indices(whole, [("frequency", "descending"), ("value", "ascending")])).slice(
                0, top
            )
        return parts[0].slice(0, top)

    @property
    def _is_ranked(self) -> bool:
        """Whether values stand in the order of their frequencies: those of which it is told where they live do not."""
        return self.table_files is None

    def histogram(self) -> Histogram | None:
        """The histogram, without bins where all values are infinite; None where there is none."""
        return self._bins

    @cached_property
    def _bins(self) -> Histogram | None:
        stored = self._read_histogram()
        if stored is not None:
            return stored
        below, above = count_infinities(self.summary)
        values = self.value_count
        if not below + above or values is None or values - (self.summary.get("nans") or 0) > below + above:
            return None
        return Histogram(EQUI_HEIGHT, [], np.zeros(0, np.int64), below=below, above=above)

    def _read_histogram(self) -> Histogram | None:
        if self.histograms is None:
            return None
        part = self.store.open_part(self.histograms)
        edges = f"edges_{self.column.encoding}"
        names = self._names(["kind", edges, "counts", "distincts", *(["errors"] if self.file is None else [])])
        rows = self._own(part.read_rows(part.groups_of_column(self.ordinal), names)).to_pylist()
        return _histogram(self.column, self.summary, rows[0]) if rows else None

    def choose_rank_histogram(self, bars: Histogram) -> Histogram:
        """What tells ranks: bins of equal width do not where percentiles were kept."""
        name = f"percentiles_{self.column.encoding}"
        if bars.kind == EQUI_HEIGHT or not self.summary.get(name):
            return bars
        ends = np.array(percentile_ranks(bars.number))
        return Histogram(EQUI_HEIGHT, self.summary[name], np.diff(ends[1:], prepend=0))

    def _listed(self, ref: ObjectRef, top: int | None, more: Sequence[str]) -> pa.Table:
        value = f"value_{self.column.encoding}"
        given = ["frequency", *(["error"] if self.file is None else []), *more]
        names = self._names([value, *given])
        part = self.store.open_part(ref)
        parts, found = [], 0
        for group in self._groups(part.groups_of_column(self.ordinal), few=top is not None and top <= HEADS):
            rows = self._own(part.read_rows([group], names)).rename_columns({value: "value"})
            parts.append(rows)
            found += rows.num_rows
            if top is not None and found >= top and self._is_ranked:
                break
        whole = (
            pa.concat_tables(parts) if parts else self._own(part.read_rows([], names)).rename_columns({value: "value"})
        )
        return whole.select(["value", *given])

    @staticmethod
    def _groups(holding: Sequence[int], *, few: bool) -> Sequence[int]:
        return [group for group in holding if group == 0] if few else holding

    def _names(self, names: list[str]) -> list[str]:
        return ["column", *([] if self.file is None else ["file"]), *names]

    def _own(self, rows: pa.Table) -> pa.Table:
        mask = pc.equal(rows["column"], self.ordinal)
        return rows.filter(mask if self.file is None else pc.and_(mask, pc.equal(rows["file"], self.file)))


def count_infinities(summary: Mapping[str, Any]) -> tuple[int, int]:
    """How many values of a column are -Infinity, and how many Infinity; 0 where that is not known: bins have them."""
    return summary.get("negative_infinities") or 0, summary.get("positive_infinities") or 0


def _histogram(column: Column, summary: Mapping[str, Any], row: Mapping[str, Any]) -> Histogram | None:
    """The histogram of a column, with what the format leaves out, from its rows of two objects."""
    bounds = summary.get(f"lo_{column.encoding}"), summary.get(f"hi_{column.encoding}")
    below, above = count_infinities(summary)
    others = (summary.get("nulls") or 0) + (summary.get("nans") or 0) + below + above
    number = (summary.get("rows") or 0) - others
    bins = restore_bins(row[f"edges_{column.encoding}"], row["counts"], bounds, number, column.encoding)
    if bins is None:
        return None
    distincts, errors = (
        None if one is None else np.array(one, np.int64) for one in (row["distincts"], row.get("errors"))
    )
    edges, counts = bins
    return Histogram(row["kind"], edges, counts, distincts, errors, below, above)


def measure_rank_errors(store: Store, snapshot: Snapshot, shares: Sequence[float]) -> dict[str, float | None]:
    """By what share of a column's values the ranks of some quantiles of the table may be off, by the column's key.

    None where its histogram does not tell: bins of equal width are not what quantiles are taken from.
    """
    if snapshot.summary is None or snapshot.histograms is None:
        return {}
    summaries = {row["column"]: row for row in store.get(snapshot.summary).to_pylist()}
    found: dict[str, float | None] = {}
    for row in store.get(snapshot.histograms).to_pylist():
        column, summary = snapshot.described[row["column"]], summaries.get(row["column"])
        bins = _histogram(column, summary, row) if summary and summary["files"] == snapshot.files_total else None
        if bins is not None:
            number = bins.number
            ranks = [max(1, math.ceil(share * number)) for share in shares]
            errors = [one.error for one in find_quantiles(bins, ranks, str(column.encoding))]
            is_known = bins.kind == EQUI_HEIGHT and None not in errors
            found[column.key] = max(error or 0 for error in errors) / number if is_known else None
    return found


def read_table_details(store: Store, snapshot: Snapshot, column: Column) -> ColumnDetails | None:
    """The details of a column at table level, None where it has no statistics at all."""
    ordinal = next((i for i, known in enumerate(snapshot.described) if is_compatible(known, column)), -1)
    part = store.open_part(snapshot.summary) if snapshot.summary else None
    counts = ["rows", "nulls", "nans", "negative_infinities", "positive_infinities", "distinct", "files"]
    names = ["column", *counts, "lo_exact", "hi_exact", "frequencies"]
    ends = [] if column.encoding is None else [f"{end}_{column.encoding}" for end in ("lo", "hi", "percentiles")]
    rows = part.read_rows(part.groups_of_column(ordinal), names + ends) if part else None
    found = [] if rows is None else rows.filter(pc.equal(rows["column"], ordinal)).to_pylist()
    if not found:
        return None
    frequencies = snapshot.frequencies
    lists = tuple(ref.object for ref in frequencies if ordinal in ref.columns)
    heads = frequencies[0].object if frequencies else None
    files = snapshot.table_files if ordinal in snapshot.distribution else None
    return ColumnDetails(store, column, found[0], ordinal, None, heads, lists, snapshot.histograms, files)


def make_empty_details(store: Store, column: Column) -> ColumnDetails:
    """The details of a column of a table without rows."""
    nothing = {"rows": 0, "nulls": 0, "nans": 0, "files": 0, "frequencies": "complete"}
    return ColumnDetails(store, column, nothing, -1, None, None, (), None)


def read_file_details(
    store: Store, stored: SnapshotFiles, summary: Mapping[str, Any], file: int, column: Column
) -> ColumnDetails:
    """The details of a column in one data file."""
    refs: dict[str, tuple[ObjectRef, int]] = {}
    at = 0
    for block, ordinal, live in stored.sources(column):
        inside = np.flatnonzero(live == file)
        if len(inside):
            refs, at = _refs(store, block, int(inside[0])), ordinal
            break
    lists, place = refs.get("frequencies", (None, 0))
    bars, at_bars = refs.get("histograms", (None, place))
    both = lists is None or bars is None or place == at_bars
    return ColumnDetails(
        *(store, column, summary, at, place if lists else at_bars, lists, (lists,) if lists else ()),
        bars if both else None,
    )


def read_table_tops(store: Store, snapshot: Snapshot) -> dict[int, tuple[Any, int]]:
    """The most frequent value of every column that has a list, by the column's place in the schema."""
    if not snapshot.frequencies:
        return {}
    return _tops(store.open_part(snapshot.frequencies[0].object), None)


def read_file_tops(store: Store, stored: SnapshotFiles, file: int) -> dict[str, tuple[Any, int]]:
    """The same of one data file, by the key of the column."""
    found: dict[str, tuple[Any, int]] = {}
    for columns, ref, place in _details_of(store, stored, file, "frequencies"):
        tops = _tops(store.open_part(ref), place)
        found = {**{columns[ordinal].key: top for ordinal, top in tops.items()}, **found}
    return found


def read_file_percentiles(
    store: Store, stored: SnapshotFiles, file: int, known: Mapping[str, tuple[Column, Mapping[str, Any]]]
) -> dict[str, list[Any]]:
    """The percentiles of columns of a data file, taken from their histograms, by the key of the column."""
    found: dict[str, list[Any]] = {}
    for columns, ref, place in _details_of(store, stored, file, "histograms"):
        part = store.open_part(ref)
        rows = part.read_rows(range(part.groups), HISTOGRAMS.names)
        for row in rows.filter(pc.equal(rows["file"], place)).to_pylist():
            key = columns[row["column"]].key
            if key in found or key not in known:
                continue
            bars = _histogram(*known[key], row)
            if bars is not None and bars.kind == EQUI_HEIGHT:
                found[key] = compute_percentiles(bars, str(known[key][0].encoding))
    return found


def _details_of(
    store: Store, stored: SnapshotFiles, file: int, kind: str
) -> Iterator[tuple[Sequence[Column], ObjectRef, int]]:
    """The objects with details of a data file: the columns that they tell of, and the file's place in them."""
    for block, live in stored.covered:
        inside = np.flatnonzero(live == file)
        if len(inside):
            refs = _refs(store, block, int(inside[0]))
            if kind in refs:
                yield block.columns, *refs[kind]


def _tops(part: ObjectPart, file: int | None) -> dict[int, tuple[Any, int]]:
    names = ["value_long", "value_double", "value_binary"]
    rows = part.read_rows([0], ["column", *(["file"] if file is not None else []), *names, "frequency"])
    if file is not None:
        rows = rows.filter(pc.equal(rows["file"], file))
    first: dict[int, int] = {}
    for place, column in enumerate(rows["column"].to_pylist()):
        first.setdefault(column, place)
    found = {}
    for column, place in first.items():  # not taken by an array: to make one Arrow imports pandas, half a second
        (row,) = rows.slice(place, 1).to_pylist()
        found[column] = (next(row[name] for name in names if row[name] is not None), row["frequency"])
    return found


def _refs(store: Store, block: Block, file: int) -> dict[str, tuple[ObjectRef, int]]:
    """The objects with details of a data file of a block, by their kind, and the file's place in each."""
    files = store.get(block.files)
    row = files.filter(pc.equal(files["file"], file))
    found = ((kind, one) for kind in ("frequencies", "histograms") for one in find_detail_files(row, kind))
    return {kind: (one.ref, int(one.inside[0])) for kind, one in found}
