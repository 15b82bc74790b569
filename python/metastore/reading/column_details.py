"""Value lists and histograms of one column, of a table or of one of its data files."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.counts import subtract
from metastore.format.histogram_bins import Histogram
from metastore.format.object_layout import HEADS
from metastore.format.value_postings import POSTING_COLUMNS, read_postings
from metastore.reading.summary_rows import count_or_zero

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.store import Store


_NOT_LISTED = ("none", None)


@dataclass(frozen=True, kw_only=True)
class ColumnDetails:
    """Value list and histogram of a column.

    Attributes:
        summary: The column's row of the summary.
        ordinal: The column's number in the objects.
        file: The data file's number in the objects, or None for the table.
        heads: The object whose row group 0 has the most frequent values.
        lists: The objects with all listed values.
        histograms: The object with the histogram.
        table_files: The object that lists the data files, if the column has a value index.
    """

    store: Store
    column: Column
    summary: Mapping[str, Any]
    ordinal: int
    file: int | None = None
    heads: ObjectRef | None = None
    lists: tuple[ObjectRef, ...] = ()
    histograms: ObjectRef | None = None
    table_files: ObjectRef | None = None

    @property
    def value_count(self) -> int | None:
        """The number of values without nulls, or None if unknown."""
        return subtract(self.summary.get("rows"), self.summary.get("nulls"))

    @property
    def nan_count(self) -> int:
        """The number of NaNs, 0 if unknown."""
        return count_or_zero(self.summary, "nans")

    @property
    def may_have_values(self) -> bool:
        """Whether there are values that are neither null nor NaN, or may be."""
        return self.value_count is None or self.value_count > self.nan_count

    @property
    def has_value_list(self) -> bool:
        """Whether there is a list of values, which may be empty."""
        return self.summary.get("frequencies") not in _NOT_LISTED

    def read_value_list(self, top: int | None, more_fields: Sequence[str] = ()) -> pa.Table:
        """Read the most frequent values: `value`, `frequency`, `error` and more fields."""
        if not self.has_value_list:
            return _make_empty_list()
        if top is not None and top <= HEADS:
            return self._read_heads(more_fields).slice(0, top)
        if not self.lists:
            return _make_empty_list()
        values = pa.concat_tables(self._read_list(ref, top, more_fields) for ref in self.lists)
        if len(self.lists) == 1 and self._is_ranked:
            return values.slice(0, top)
        order = pc.sort_indices(values, [("frequency", "descending"), ("value", "ascending")])
        return values.take(order).slice(0, top)

    @property
    def _is_ranked(self) -> bool:
        """Whether lists are in the order of frequencies; those of a value index are not."""
        return self.table_files is None

    def _read_heads(self, more_fields: Sequence[str]) -> pa.Table:
        if self.heads is None:
            return _make_empty_list()
        part = self.store.open_part(self.heads)
        groups = {0}.intersection(part.groups_of_column(self.ordinal))
        return self._read_values(part, list(groups), more_fields)

    def _read_list(self, ref: ObjectRef, top: int | None, more_fields: Sequence[str]) -> pa.Table:
        """Read the values in one object; of a ranked list, only the row groups that hold the first `top` values."""
        part = self.store.open_part(ref)
        limit = top if self._is_ranked else None
        tables = [self._read_values(part, [], more_fields)]
        count = 0
        for group in part.groups_of_column(self.ordinal):
            table = self._read_values(part, [group], more_fields)
            tables.append(table)
            count += table.num_rows
            if limit is not None and count >= limit:
                break
        return pa.concat_tables(tables)

    def _read_values(self, part: ObjectPart, groups: Sequence[int], more_fields: Sequence[str]) -> pa.Table:
        value = f"value_{self.column.encoding}"
        fields = ["frequency", *self._table_fields("error"), *more_fields]
        rows = self._read_rows(part, groups, [value, *fields])
        return rows.rename_columns({value: "value"}).select(["value", *fields])

    def read_value_files(self) -> list[dict[str, int] | None]:
        """Read the frequency of each listed value by the path of each data file; None for a value if unknown."""
        if self.table_files is None:
            return [None] * self.read_value_list(None).num_rows
        rows = self.read_value_list(None, POSTING_COLUMNS)
        if not rows.num_rows:
            return []
        paths = self.store.get(self.table_files, ["path"])["path"].to_pylist()
        by_row: dict[int, dict[str, int]] = defaultdict(dict)
        numbers, files, frequencies = read_postings(rows)
        for row, file, frequency in zip(numbers.tolist(), files.tolist(), frequencies.tolist(), strict=True):
            if frequency:
                by_row[row][paths[file]] = frequency
        return list(map(by_row.get, range(rows.num_rows)))

    def histogram(self) -> Histogram | None:
        """Return the histogram, or None; it has no bins if all values are infinite."""
        return self._histogram

    @cached_property
    def _histogram(self) -> Histogram | None:
        stored = self._read_histogram()
        if stored is None:
            return self._describe_infinities()
        return stored

    def _describe_infinities(self) -> Histogram | None:
        """Return a histogram without bins if all values are infinite, else None."""
        below, above = count_infinities(self.summary)
        finite_values = subtract(self.value_count, self.nan_count, below, above)
        if not below + above or finite_values is None or finite_values > 0:
            return None
        return Histogram(edges=[], counts=np.zeros(0, np.int64), below=below, above=above)

    def _read_histogram(self) -> Histogram | None:
        if self.histograms is None:
            return None
        part = self.store.open_part(self.histograms)
        names = [f"edges_{self.column.encoding}", "counts", "distincts", *self._table_fields("errors")]
        row = read_first_row(self._read_rows(part, part.groups_of_column(self.ordinal), names))
        if row is None:
            return None
        return restore_histogram(self.column, self.summary, row)

    def _table_fields(self, *names: str) -> tuple[str, ...]:
        """Return these names for a table, and none for a data file, whose objects do not have such fields."""
        if self.file is not None:
            return ()
        return names

    def _read_rows(self, part: ObjectPart, groups: Sequence[int], names: Sequence[str]) -> pa.Table:
        """Read the rows of this column; for a data file, only those of the file."""
        if self.file is None:
            rows = part.read_rows(groups, ["column", *names])
            return rows.filter(pc.equal(rows["column"], self.ordinal))
        rows = part.read_rows(groups, ["column", "file", *names])
        is_column = pc.equal(rows["column"], self.ordinal)
        is_file = pc.equal(rows["file"], self.file)
        return rows.filter(pc.and_(is_column, is_file))


def read_first_row(rows: pa.Table) -> dict[str, Any] | None:
    """Return the first row, or None without rows."""
    if not rows.num_rows:
        return None
    return {name: _to_python(rows[name][0]) for name in rows.column_names}


def _to_python(value: pa.Scalar) -> Any:
    """Return a value, in which NumPy converts lists of numbers: it is many times faster than Arrow."""
    if not value.is_valid or not isinstance(value, pa.ListScalar):
        return value.as_py()
    values = value.values
    if values.null_count or pa.types.is_binary(values.type):
        return values.to_pylist()
    return values.to_numpy().tolist()


def _make_empty_list() -> pa.Table:
    return pa.table({name: pa.array([], pa.int64()) for name in ("value", "frequency", "error")})


def count_infinities(summary: Mapping[str, Any]) -> tuple[int, int]:
    """Count the values -Infinity and Infinity of a column; 0 if unknown, because bins include them then."""
    return count_or_zero(summary, "negative_infinities"), count_or_zero(summary, "positive_infinities")


def restore_histogram(column: Column, summary: Mapping[str, Any], row: Mapping[str, Any]) -> Histogram | None:
    """Restore a column's histogram from its rows of the summary and of the histograms."""
    below, above = count_infinities(summary)
    edges = row[f"edges_{column.encoding}"]
    if edges is None or row["counts"] is None:
        return None
    return Histogram(
        edges=edges,
        counts=np.asarray(row["counts"], np.int64),
        distincts=_to_array(row["distincts"]),
        errors=_to_array(row.get("errors")),
        below=below,
        above=above,
    )


def _to_array(numbers: Sequence[int] | None) -> np.ndarray | None:
    if numbers is None:
        return None
    return np.array(numbers, np.int64)
