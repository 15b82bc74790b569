"""Finds contradictions: statistics that cannot be true for any data file, and that readers ignore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.sortable_values import is_wide_decimal
from metastore.format.value_rendering import decimal_from_bytes
from metastore.format.zones import hash_identities
from metastore.store.block_files import number_cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column


_ENCODINGS = ("long", "double", "binary")


def check_statistics(
    rows: pa.Table, columns: Sequence[Column], ordinals: Iterable[int], files: pa.Table | None
) -> list[str]:
    """List contradictions in the rows of a `summary` or `table-summary`.

    Args:
        rows: The rows.
        columns: The columns of the block or the snapshot.
        ordinals: The ordinals of the columns of the object.
        files: The rows of the block's `files`, if they are readable.
    """
    is_listed = np.isin(rows["column"].to_numpy(), np.fromiter(ordinals, np.int64))
    is_exact = _to_mask(pc.equal(rows["distinct_error"], 0.0))
    exceeds_rows = _to_mask(pc.greater(rows["distinct"], rows["rows"]))
    masks: dict[str, Any] = {
        "a column that the object does not hold": ~is_listed,
        "negative counts": _find_negative(rows, ("rows", "nulls", "nans", "distinct")),
        **_check_counts_and_bounds(rows, columns),
        "bounds of another encoding than the column's": is_listed & _find_misplaced_bounds(rows, columns),
        "more exact distinct values than rows": is_exact & exceeds_rows,
    }
    if files is not None:
        masks |= _check_against_files(rows, files)
    return _describe_masks(masks)


def _describe_masks(masks: Mapping[str, Any]) -> list[str]:
    """Name the contradictions that occur, with the numbers of their rows."""
    problems = []
    for problem, mask in masks.items():
        count = int(np.sum(mask))
        if count:
            problems.append(f"{problem} ({count})")
    return problems


def find_contradictory_rows(rows: pa.Table, columns: Sequence[Column], files: int) -> NDArray[np.bool_]:
    """Find rows of a `summary` with contradictions: for look-ups their data files have no statistics."""
    ordinals = rows["file"].to_numpy()
    is_wrong: NDArray[np.bool_] = (ordinals < 0) | (ordinals >= files)
    is_wrong |= _find_negative(rows, ("rows", "nulls", "nans"))
    for mask in _check_counts_and_bounds(rows, columns).values():
        is_wrong |= mask
    return is_wrong


def check_file_list(files: pa.Table) -> list[str]:
    """List contradictions in the rows of a `files` object."""
    ordinals = files["file"].to_numpy()
    masks = {
        "ordinals that are not 0, 1, 2, …": np.sort(ordinals) != np.arange(files.num_rows),
        "negative sizes or rows": _find_negative(files, ("size", "rows")),
    }
    return _describe_masks(masks)


def check_identities(written: str | None, files: pa.Table) -> list[str]:
    """List contradictions between the rows of `files` and the identities in its footer, if there are any."""
    if written is None or written == hash_identities(files):
        return []
    return ["identities that are those of other data files"]


def check_zones(zones: pa.Table, expected: Sequence[pa.Table]) -> list[str]:
    """List contradictions between the rows of `zones` and the summaries of the block, which give the expected rows."""
    expected_rows = {}
    for table in expected:
        for row in table.to_pylist():
            expected_rows[row["column"], row["zone"]] = row
    wrong = 0
    for row in zones.to_pylist():
        expected_row = expected_rows.get((row["column"], row["zone"]))
        wrong += expected_row != row
    if not wrong:
        return []
    return [f"a zone that is not that of its data files ({wrong})"]


def check_snapshot(listed: pa.Table, snapshot: Snapshot) -> list[str]:
    """List contradictions between a snapshot's entry and its list of data files."""
    problems = []
    if listed.num_rows != snapshot.files_total:
        problems.append(f"{listed.num_rows} data files where the snapshot has {snapshot.files_total}")
    deleted = pc.fill_null(listed["deleted_rows"], 0)
    if np.any(_to_mask(pc.greater(deleted, listed["rows"]))):
        problems.append("more deleted rows than rows")
    return problems


def _check_counts_and_bounds(rows: pa.Table, columns: Sequence[Column]) -> dict[str, NDArray[np.bool_]]:
    """Compare the counts and bounds of each row with each other."""
    nulls = pc.fill_null(rows["nulls"], 0)
    nans = pc.fill_null(rows["nans"], 0)
    empty = pc.add(nulls, nans)
    has_no_value = _to_mask(pc.equal(empty, rows["rows"]))
    return {
        "more nulls and NaN than rows": _to_mask(pc.greater(empty, rows["rows"])),
        "bounds where there is no value": has_no_value & _find_bounds(rows, _ENCODINGS),
        "an upper bound below the lower": _find_inverted_bounds(rows, columns),
        "NaN as a bound": _to_mask(pc.is_nan(rows["lo_double"])) | _to_mask(pc.is_nan(rows["hi_double"])),
    }


def _check_against_files(rows: pa.Table, files: pa.Table) -> dict[str, Any]:
    """Compare rows of `summary` with the rows of the block's `files`."""
    count = files.num_rows
    file_ordinals = rows["file"].to_numpy()
    is_listed = (file_ordinals >= 0) & (file_ordinals < count)
    expected_counts = _read_row_counts(files)[np.where(is_listed, file_ordinals, count)]
    row_counts = pc.fill_null(rows["rows"], -1).to_numpy()
    are_known = (expected_counts >= 0) & (row_counts >= 0)
    cells = number_cells(rows)
    return {
        "a data file that the block does not have": ~is_listed,
        "another number of rows than the data file": are_known & (expected_counts != row_counts),
        "two rows for one column and data file": len(np.unique(cells)) < len(cells),
        "all values of a data file of which no object has any": _find_absent_lists(rows, files),
    }


def _read_row_counts(files: pa.Table) -> NDArray[np.int64]:
    """Read the number of rows of each data file by its ordinal, and one more -1 at the end; -1 means unknown."""
    count = files.num_rows
    ordinals = files["file"].to_numpy()
    is_sound = (ordinals >= 0) & (ordinals < count)
    listed_counts = pc.fill_null(files["rows"], -1).to_numpy()
    row_counts = np.full(count + 1, -1, np.int64)
    row_counts[ordinals[is_sound]] = listed_counts[is_sound]
    return row_counts


def _find_absent_lists(rows: pa.Table, files: pa.Table) -> Any:
    """Find rows that promise a complete value list although their data file names no object with lists."""
    files_without_lists = files["file"].filter(pc.is_null(files["frequencies_name"])).to_numpy()
    is_complete = _to_mask(pc.equal(rows["frequencies"], "complete"))
    has_values = _to_mask(pc.greater(rows["distinct"], 0))
    return is_complete & has_values & np.isin(rows["file"].to_numpy(), files_without_lists)


def _find_inverted_bounds(rows: pa.Table, columns: Sequence[Column]) -> Any:
    is_inverted = _to_mask(pc.greater(rows["lo_long"], rows["hi_long"]))
    is_inverted |= _to_mask(pc.greater(rows["lo_double"], rows["hi_double"]))
    if pc.any(pc.is_valid(rows["lo_binary"])).as_py():
        is_inverted |= _find_inverted_bytes(rows, columns)
    return is_inverted


def _find_inverted_bytes(rows: pa.Table, columns: Sequence[Column]) -> Any:
    """Find rows whose bounds are bytes in the wrong order; those of wide decimals are compared as numbers."""
    is_inverted = _to_mask(pc.greater(rows["lo_binary"], rows["hi_binary"]))
    decimals = [ordinal for ordinal, column in enumerate(columns) if is_wide_decimal(column)]
    if not decimals:
        return is_inverted
    is_decimal = np.isin(rows["column"].to_numpy(), decimals)
    for row in np.flatnonzero(is_decimal).tolist():
        lo = rows["lo_binary"][row].as_py()
        hi = rows["hi_binary"][row].as_py()
        has_both = lo is not None and hi is not None
        is_inverted[row] = has_both and decimal_from_bytes(lo) > decimal_from_bytes(hi)
    return is_inverted


def _find_misplaced_bounds(rows: pa.Table, columns: Sequence[Column]) -> Any:
    """Find rows with bounds of another encoding than that of the column."""
    is_misplaced = np.zeros(rows.num_rows, bool)
    ordinals = rows["column"].to_numpy()
    for encoding in _ENCODINGS:
        other_columns = [ordinal for ordinal, column in enumerate(columns) if column.encoding != encoding]
        is_misplaced |= _find_bounds(rows, [encoding]) & np.isin(ordinals, other_columns)
    return is_misplaced


def _find_bounds(rows: pa.Table, encodings: Sequence[str]) -> Any:
    """Find rows with a bound of one of these encodings."""
    has_bound = np.zeros(rows.num_rows, bool)
    for encoding in encodings:
        has_bound |= _to_mask(pc.is_valid(rows[f"lo_{encoding}"]))
        has_bound |= _to_mask(pc.is_valid(rows[f"hi_{encoding}"]))
    return has_bound


def _find_negative(rows: pa.Table, names: Sequence[str]) -> Any:
    """Find rows with a negative number in one of these fields."""
    is_negative = np.zeros(rows.num_rows, bool)
    for name in names:
        is_negative |= _to_mask(pc.less(rows[name], 0))
    return is_negative


def _to_mask(condition: pa.ChunkedArray) -> Any:
    """Convert a condition to a mask that is false where the condition is null."""
    return np.array(pc.fill_null(condition, False), bool)  # noqa: FBT003 - pyarrow's signature
