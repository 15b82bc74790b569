"""Writes a block: detail objects and summaries first, the list of files last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore._format.block_writer import BlockWriter
from metastore._format.detail_layout import lay_out_histograms, lay_out_sketches, lay_out_value_lists
from metastore._format.layout import ZONED_FILES
from metastore._format.schemas import FILES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore._format.block_writer import PutObject
    from metastore._format.columns import Column
    from metastore._format.manifest import Block, TableIdentity
    from metastore._format.objects import ObjectRef
    from metastore._tables.model import DataFile


@dataclass(frozen=True)
class BlockContent:
    """What a block will hold.

    Attributes:
        computed: `full`, `footer` or `files`.
        columns: The columns that ordinals mean.
        files: The data files, in the order of their ordinals.
        summary: Rows of the `summary` schema; None without columns.
        sketches: Rows of the `sketches` schema, or None.
        frequencies: Rows of the `frequencies` schema; None where values were not counted.
        histograms: Rows of the `histograms` schema, or None.
        statistics: User-defined statistics that were computed, or tried: name to version.
    """

    computed: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    summary: pa.Table | None = None
    sketches: pa.Table | None = None
    frequencies: pa.Table | None = None
    histograms: pa.Table | None = None
    statistics: Mapping[str, int] = field(default_factory=dict)


def write_block(
    put: PutObject,
    content: BlockContent,
    table: TableIdentity,
    settings: Mapping[str, Any],
    *,
    zoned: int = ZONED_FILES,
) -> Block:
    """Write the objects of a block."""
    details = _write_details(put, content)
    writer = BlockWriter(put, content.columns, _files_table(content.files, details), zoned)
    _write_summary(writer, content)
    return writer.finish(content.computed, content.statistics, table, settings)


def _write_details(put: PutObject, content: BlockContent) -> dict[str, ObjectRef]:
    found = {"sketches": _write_sketches(put, content.sketches)}
    if content.frequencies is not None:  # also without rows: that the object is there says that values were counted
        found["frequencies"] = put("frequencies", *lay_out_value_lists(content.frequencies), {})
    if content.histograms is not None and content.histograms.num_rows:
        found["histograms"] = put("histograms", *lay_out_histograms(content.histograms), {})
    return {kind: ref for kind, ref in found.items() if ref is not None}


def _write_sketches(put: PutObject, table: pa.Table | None) -> ObjectRef | None:
    if table is None or table.num_rows == 0:
        return None
    return put("sketches", *lay_out_sketches(table), {})


def _write_summary(writer: BlockWriter, content: BlockContent) -> None:
    if content.summary is None or content.summary.num_rows == 0:
        return
    ordered = content.summary.sort_by([("column", "ascending"), ("file", "ascending")])
    ordinals = ordered.column("column").to_numpy()
    for first in range(0, len(content.columns), writer.width):
        start, end = ordinals.searchsorted([first, first + writer.width])
        if start < end:
            held = range(first, min(first + writer.width, len(content.columns)))
            writer.add(ordered.slice(start, end - start), held)


def _files_table(files: Sequence[DataFile], details: Mapping[str, ObjectRef]) -> pa.Table:
    count = len(files)
    partitions = [list(file.partition.items()) or None for file in files]
    values = {
        "file": range(count),
        "path": [file.path for file in files],
        "size": [file.size for file in files],
        "modified": [file.modified for file in files],
        "rows": [file.rows for file in files],
        "partition": partitions,
    }
    for kind, ref in details.items():
        values |= {
            f"{kind}_name": [ref.name] * count,
            f"{kind}_length": [ref.length] * count,
            f"{kind}_sha256": [ref.sha256] * count,
            f"{kind}_footer_length": [ref.footer_length] * count,
            f"{kind}_footer_sha256": [ref.footer_sha256] * count,
            f"{kind}_file": range(count),
        }
    return pa.table([pa.array(values.get(field.name, [None] * count), field.type) for field in FILES], schema=FILES)
