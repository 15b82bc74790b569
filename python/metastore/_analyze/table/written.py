"""The value lists and histograms of a table: collected column by column, reduced, written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._analyze.coverage import DamagedBlock
from metastore._analyze.table import bins, objects
from metastore._analyze.table.cuts import COMPLETE, NONE, Lists
from metastore._analyze.table.details import listed
from metastore._analyze.table.lists import LISTED
from metastore._analyze.table.reduction import THRESHOLD, Listed, reduced
from metastore._analyze.table.wanted import Wanted
from metastore._format.manifest import SummaryRef
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metastore._analyze.kernel import ColumnStatistics
    from metastore._analyze.level import Known
    from metastore._analyze.table.details import Part
    from metastore._format.objects import ObjectRef
    from metastore._store import Store

    Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """How the table level is made.

    Attributes:
        bins: Bins of a histogram.
        top: Values kept of a column of which some file keeps its most frequent ones only.
        algorithm: `auto`, `exact`, `reduce`, `duplicates` or `scatter`.
        threshold: Below it a sum of the files' distinct (or duplicate) counts is small.
    """

    bins: int = 1000
    top: int = 1000
    algorithm: str = "auto"
    threshold: int = THRESHOLD


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        frequencies: The objects of value lists.
        histograms: That of histograms, if any.
        listed: What is known of the lists, by the column's place in the snapshot's schema.
    """

    frequencies: tuple[SummaryRef, ...]
    histograms: ObjectRef | None
    listed: dict[int, Listed]


@dataclass
class TableDetails:
    """Collects what is known of columns, and writes their lists and histograms.

    Attributes:
        store: Where detail objects are and the result goes.
        options: How it is made.
    """

    store: Store
    options: Options
    _lists: list[Lists] = field(default_factory=list)
    _files: dict[int, bins.Files] = field(default_factory=dict)
    _wanted_lists: Wanted = field(default_factory=lambda: Wanted("frequencies"))
    _wanted_bins: Wanted = field(default_factory=lambda: Wanted("histograms"))

    def add(self, ordinal: int, known: Known, found: ColumnStatistics) -> None:
        """Take a column.

        Args:
            ordinal: Its place in the snapshot's schema.
            known: What is known of its data files.
            found: What that was reduced to.
        """
        if known.column.encoding is None:
            return
        lists = _lists_of(ordinal, known)
        self._lists.append(lists)
        if lists.is_known:
            self._wanted_lists.add(ordinal, known.sources, lists.floors)
        nans = _longs(known.rows, "nans", 0)
        values = np.where(lists.values < 0, -1, lists.values - nans)
        distinct = None if found.distinct is None else found.distinct - (1 if found.nans else 0)
        self._files[ordinal] = bins.Files(known.column, values, lists.los, lists.his, distinct)
        self._wanted_bins.add(ordinal, known.sources, np.arange(known.rows.num_rows))

    def write(self) -> Written:
        """Reduce and write what was collected.

        Raises:
            DamagedBlock: A detail object is not what its block names.
        """
        frequencies, facts = self._write_lists()
        return Written(frequencies, self._write_histograms(), facts)

    def _write_lists(self) -> tuple[tuple[SummaryRef, ...], dict[int, Listed]]:
        parts = [listed(part, self._read(part)) for part in self._wanted_lists.parts()]
        rows = pa.concat_tables(parts) if parts else LISTED.empty_table()
        table, facts = reduced(rows, self._lists, self.options.top)
        if not table.num_rows:
            return (), facts
        ordered, groups = objects.lists_layout(table)
        ref = self.store.put("table-frequencies", ordered, groups)
        return (SummaryRef(ref, tuple(sorted(ordered["column"].unique().to_pylist()))),), facts

    def _write_histograms(self) -> ObjectRef | None:
        by_column: dict[int, dict[int, Any]] = {}
        for part in self._wanted_bins.parts():
            for ordinal, place, one in bins.stored(part, self._read(part), self._files):
                by_column.setdefault(ordinal, {})[place] = one
        found = (
            (
                ordinal,
                self._files[ordinal].column,
                bins.of_table(self._files[ordinal], by_column[ordinal], self.options.bins),
            )
            for ordinal in sorted(by_column)
        )
        table = objects.histograms_table((o, column, one) for o, column, one in found if one is not None)
        if not table.num_rows:
            return None
        return self.store.put("table-histograms", table, objects.even_groups(table.num_rows, objects.ROW_GROUPS))

    def _read(self, part: Part) -> pa.Table:
        try:
            return objects.read(part, self.store.raw)
        except DamagedObject as damage:
            raise DamagedBlock(part.block, str(damage)) from damage


def _lists_of(ordinal: int, known: Known) -> Lists:
    rows, encoding = known.rows, known.column.encoding
    nulls, nans = _longs(rows, "nulls", -1), _longs(rows, "nans", -1)
    values = np.where(nulls < 0, -1, _longs(rows, "rows", 0) - nulls)
    floors = _longs(rows, "frequencies_floor", -1)
    kinds = [_kind(*one) for one in zip(rows["frequencies"].to_pylist(), floors.tolist(), strict=True)]
    is_cut = np.array([kind != COMPLETE for kind in kinds], np.bool_)
    estimates = _longs(rows, "distinct", 0)
    exact = rows["distinct_error"].fill_null(1.0).to_numpy() == 0
    # NaN lies outside of all bounds.
    bounded = nans == 0
    los, his = (
        tuple(
            value if inside else None
            for value, inside in zip(rows[f"{end}_{encoding}"].to_pylist(), bounded, strict=True)
        )
        for end in ("lo", "hi")
    )
    lengths = rows["avg_len"].drop_null().to_numpy()
    return Lists(
        known.column,
        ordinal,
        tuple(kinds),
        np.where(is_cut, np.maximum(floors, 0), 0),
        values,
        np.where(exact, estimates, -1),
        _longs(rows, "singles", -1),
        estimates,
        los,
        his,
        float(lengths.max()) if len(lengths) else 0.0,
    )


def _kind(kind: str | None, floor: int) -> str:
    if kind is None or (floor < 0 and kind != COMPLETE):
        return NONE
    return COMPLETE if floor == 0 and kind != NONE else kind


def _longs(rows: pa.Table, name: str, missing: int) -> Longs:
    found: Longs = rows[name].fill_null(missing).to_numpy().astype(np.int64)
    return found
