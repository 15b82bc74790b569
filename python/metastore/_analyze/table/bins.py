"""Histograms of data files as they are stored, and those of a table made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore._analyze.table.histograms import merged, widths_of
from metastore._format.histogram import EQUI_HEIGHT, EQUI_WIDTH, Histogram, equal_edges, implied_counts

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from metastore._analyze.table.details import Part
    from metastore._format.columns import Column

    Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Files:
    """The data files of a column whose histograms make that of the table.

    Attributes:
        column: The column.
        values: How many values each has, null and NaN excluded; -1: not known.
        los: Their lower bounds.
        his: Their upper bounds.
        distinct: Distinct values of the table, NaN excluded; None if not known.
    """

    column: Column
    values: Longs
    los: tuple[Any, ...]
    his: tuple[Any, ...]
    distinct: int | None


def stored(part: Part, rows: pa.Table, columns: dict[int, Files]) -> list[tuple[int, int, Histogram]]:
    """Read the wanted rows of a `histograms` object; the files' numbers are their places in `Files`.

    Args:
        part: What is wanted.
        rows: All rows.
        columns: By the column's place in the snapshot's schema.

    Returns:
        Place of the column, place of the file, histogram.
    """
    chosen, ordinals, places = part.chosen(rows)
    kinds = chosen["kind"].to_pylist()
    lists = {
        name: _lists(chosen[name]) for name in chosen.column_names if name.startswith(("edges_", "counts", "dist"))
    }
    found = []
    for row, (ordinal, place) in enumerate(zip(ordinals.tolist(), places.tolist(), strict=True)):
        files = columns[ordinal]
        edges = lists[f"edges_{files.column.encoding}"][row]
        counts, distincts = lists["counts"][row], lists["distincts"][row]
        if edges is None and counts is not None:
            bounds = files.los[place], files.his[place]
            edges = equal_edges(*bounds, len(counts), str(files.column.encoding)) if None not in bounds else None
        if edges is None:
            continue
        single = (
            kinds[row] == EQUI_HEIGHT and counts is not None and distincts is not None and bool((distincts == 1).all())
        )
        counts = implied_counts(int(files.values[place]), len(edges) - 1) if counts is None else counts
        found.append((ordinal, place, Histogram(kinds[row], edges, counts, distincts, single=single)))
    return found


def of_table(files: Files, found: dict[int, Histogram], bins: int, kind: str) -> Histogram | None:
    """The histogram of a column; None where one of its files with values has none."""
    holding = np.flatnonzero(files.values != 0).tolist()
    if not holding or any(place not in found for place in holding):
        return None
    parts = [found[place] for place in holding]
    if kind == EQUI_WIDTH and (widths := widths_of(parts, files.column, bins)) is not None:
        return widths
    return merged(parts, files.column, bins, files.distinct)


def _lists(column: pa.ChunkedArray) -> list[Any]:
    """Each list as numpy values, or as bytes; None where there is none."""
    column = column.combine_chunks()
    texts = column.type.value_type == "binary"
    offsets, flat = column.offsets.to_numpy(), column.values
    valid = column.is_valid().to_pylist()
    values = flat if texts else flat.to_numpy(zero_copy_only=False)
    spans = zip(valid, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return [
        None if not present else values.slice(start, end - start).to_pylist() if texts else values[start:end]
        for present, start, end in spans
    ]
