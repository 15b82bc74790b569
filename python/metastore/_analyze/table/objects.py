"""Detail objects in and out: verified when they are read, laid out so that a look-up reads little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore._analyze.table.lists import put_most_frequent_first
from metastore._format.detail_layout import split_evenly
from metastore._format.objects import decode_detail
from metastore._format.schemas import TABLE_HISTOGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from metastore._analyze.place import ReadContent
    from metastore._analyze.table.details import DetailSlice
    from metastore._format.columns import Column
    from metastore._format.histogram import Histogram

ROW_GROUPS = 16
HISTOGRAM_GROUPS = 64


def read_detail_object(part: DetailSlice, content: ReadContent) -> pa.Table:
    """The rows of a detail object."""
    return decode_detail(part.name, part.sha256, content())


def table_lists_layout(rows: pa.Table, others: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay out value lists: the ten most frequent values of every column make the first row group."""
    ordered, number = put_most_frequent_first(rows)
    heads = pa.concat_tables([ordered.slice(0, number), others])
    heads = heads.take(pa.array(np.argsort(heads["column"].to_numpy(), kind="stable")))
    rest = ordered.slice(number)
    groups = [heads.num_rows, *split_evenly(rest.num_rows, ROW_GROUPS - 1)] if heads.num_rows else []
    return pa.concat_tables([heads, rest]), groups


def table_histogram_rows(histograms: Iterable[tuple[int, Column, Histogram]]) -> pa.Table:
    """Rows of `table-histograms`."""
    rows = [
        {
            "column": ordinal,
            "kind": one.kind,
            f"edges_{column.encoding}": one.edges,
            "counts": one.counts,
            "distincts": one.distincts,
            "errors": one.errors,
        }
        for ordinal, column, one in histograms
    ]
    columns = [pa.array([row.get(kind.name) for row in rows], kind.type) for kind in TABLE_HISTOGRAMS]
    return pa.table(columns, schema=TABLE_HISTOGRAMS)
