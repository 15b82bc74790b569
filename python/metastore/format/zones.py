"""Zones: joint statistics of many consecutive data files, so that a planner reads less."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.hashing import pad_buffer, xxhash_bytes
from metastore.format.object_layout import ZONE_FILES
from metastore.format.object_schemas import ZONES, fill_schema
from metastore.format.value_rendering import DECIMAL_BYTES, decimal_from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.table_column import Column

    Flags = NDArray[np.bool_]
    Longs = NDArray[np.int64]


IDENTITIES_KEY = "metastore.identities"
"""A footer key of `files`: hashes of the identities of the data files of each zone; base64."""

_MOST_ROWS = 1 << 62


def build_zones(rows: pa.Table, columns: Sequence[Column], rows_of_files: Longs) -> pa.Table:
    """Build the rows of `zones` from rows of `summary`.

    A zone has a count if all its data files have it, and a bound if all its files with values have it. If a data file
    has no row, or a contradictory one, the zone is unknown: it has no `rows`.
    """
    ordinals = rows["column"].to_numpy()
    parts = []
    for ordinal in np.unique(ordinals).tolist():
        start, end = ordinals.searchsorted([ordinal, ordinal + 1])
        rows_of_column = rows.slice(start, end - start)
        parts.append(_build_zones_of_column(rows_of_column, columns[ordinal], ordinal, rows_of_files))
    return pa.concat_tables([ZONES.empty_table(), *parts])


def read_row_counts(files: pa.Table) -> Longs:
    """Read the number of rows of each data file of a block, by ordinal; -1 if it is unknown."""
    counts: Longs = pc.fill_null(files.sort_by("file")["rows"], -1).to_numpy()
    return counts


def hash_identities(files: pa.Table) -> str:
    """Compute the text for `IDENTITIES_KEY` of a `files` object.

    Zone by zone 24 bytes, all numbers little-endian: the XXH64 of the paths of its data files in UTF-16, one after the
    other; the XXH64 of three numbers of 8 bytes for each of them (UTF-16 code units of its path, size, modification
    time or -1); the CRC-32 of its first path in UTF-8, and that of its last. They are
    faster than SHA-256, because a scan of a million files computes them, and need not be secure.
    """
    ordered = files.select(["file", "path", "size", "modified"]).sort_by("file")
    paths = ordered["path"].to_pylist()
    texts = [path.encode("utf-16-le") for path in paths]
    units = np.array([len(text) // 2 for text in texts], np.int64)
    modified = pc.fill_null(ordered["modified"], -1).to_numpy()
    numbers = np.stack([units, ordered["size"].to_numpy(), modified], axis=1)
    starts = np.arange(0, len(paths), ZONE_FILES)
    ends = np.minimum(starts + ZONE_FILES, len(paths))
    text_starts = np.concatenate([[0], np.cumsum(2 * units)])
    path_hashes = _hash_slices(b"".join(texts), text_starts[starts], text_starts[ends])
    number_hashes = _hash_slices(numbers.astype("<i8").tobytes(), starts * 24, ends * 24)
    identities = []
    for zone, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        first = zlib.crc32(paths[start].encode())
        last = zlib.crc32(paths[end - 1].encode())
        identity = struct.pack("<QQII", int(path_hashes[zone]), int(number_hashes[zone]), first, last)
        identities.append(identity)
    return base64.b64encode(b"".join(identities)).decode()


def _hash_slices(data: bytes, starts: Longs, ends: Longs) -> UInt64Array:
    return xxhash_bytes(pad_buffer(np.frombuffer(data, np.uint8)), starts, ends - starts)


class _SummaryOfFiles(NamedTuple):
    """The summary of a column by data file; -1 and false where it is unknown.

    Attributes:
        rows: Number of rows.
        nulls: Number of nulls.
        nans: Number of NaNs.
        has_lo: Whether there is a lower bound.
        has_hi: Whether there is an upper bound.
        lo: Lower bounds: an Arrow array of bytes, or numbers; None for a column with counts only.
        hi: Upper bounds in the same form.
        sound: Whether there is exactly one row, without a contradiction.
    """

    rows: Longs
    nulls: Longs
    nans: Longs
    has_lo: Flags
    has_hi: Flags
    lo: Any
    hi: Any
    sound: Flags

    def are_empty(self) -> Flags:
        """Return a mask of the data files that have only nulls and NaNs, and so no bounds."""
        is_empty: Flags = (self.nulls >= 0) & (self.nans >= 0) & (self.rows == self.nulls + self.nans)
        return is_empty


def _build_zones_of_column(rows: pa.Table, column: Column, ordinal: int, rows_of_files: Longs) -> pa.Table:
    files = _read_summary(rows, column, rows_of_files)
    starts = np.arange(0, len(rows_of_files), ZONE_FILES)
    sound = np.logical_and.reduceat(files.sound, starts)
    sound &= np.add.reduceat(files.rows.astype(np.float64), starts) < _MOST_ROWS
    zones: dict[str, Any] = {
        "column": np.full(len(starts), ordinal, np.int32),
        "zone": np.arange(len(starts), dtype=np.int32),
        "rows": _sum_counts(files.rows, starts, sound),
        "nulls": _sum_counts(files.nulls, starts, sound),
        "nans": _sum_counts(files.nans, starts, sound),
    }
    if column.encoding is not None:
        has_lo = sound & _are_bounded(files, files.has_lo, starts)
        has_hi = sound & _are_bounded(files, files.has_hi, starts)
        if column.encoding == "binary":
            zones["lo_binary"] = _reduce_bytes(files.lo, min, starts, has_lo, column)
            zones["hi_binary"] = _reduce_bytes(files.hi, max, starts, has_hi, column)
        else:
            least, greatest = _number_range(files.lo.dtype)
            lo = np.minimum.reduceat(np.where(files.has_lo, files.lo, greatest), starts)
            hi = np.maximum.reduceat(np.where(files.has_hi, files.hi, least), starts)
            zones[f"lo_{column.encoding}"] = pa.array(lo, mask=~has_lo)
            zones[f"hi_{column.encoding}"] = pa.array(hi, mask=~has_hi)
    return fill_schema(ZONES, zones, len(starts))


def _are_bounded(files: _SummaryOfFiles, has_bound: Flags, starts: Longs) -> Flags:
    """Return a mask of the zones in which every data file with values has a bound."""
    # A data file without values needs no bound.
    have_all = np.logical_and.reduceat(has_bound | files.are_empty(), starts)
    have_any = np.logical_or.reduceat(has_bound, starts)
    is_bounded: Flags = have_all & have_any
    return is_bounded


def _read_summary(rows: pa.Table, column: Column, rows_of_files: Longs) -> _SummaryOfFiles:
    """Arrange a column's rows of `summary` by data file."""
    count = len(rows_of_files)
    ordinals = rows["file"].to_numpy()

    def arrange(name: str) -> Longs:
        counts = np.full(count, -1, np.int64)
        counts[ordinals] = pc.fill_null(rows[name], -1).to_numpy()
        return counts

    row_counts = arrange("rows")
    nulls = arrange("nulls")
    nans = arrange("nans")
    value_counts = row_counts - np.maximum(nulls, 0) - np.maximum(nans, 0)
    sound = np.bincount(ordinals, minlength=count) == 1
    sound &= (row_counts >= 0) & ((rows_of_files < 0) | (row_counts == rows_of_files))
    sound &= (nulls >= -1) & (nulls <= row_counts) & (nans >= -1) & (value_counts >= 0)
    if column.encoding is None:
        no_bounds = np.zeros(count, np.bool_)
        return _SummaryOfFiles(
            rows=row_counts, nulls=nulls, nans=nans, has_lo=no_bounds, has_hi=no_bounds, lo=None, hi=None, sound=sound
        )
    row_numbers = np.full(count, -1, np.int64)
    row_numbers[ordinals] = np.arange(len(ordinals))
    indices = pa.array(np.maximum(row_numbers, 0), mask=row_numbers < 0)
    lo = rows[f"lo_{column.encoding}"].combine_chunks().take(indices)
    hi = rows[f"hi_{column.encoding}"].combine_chunks().take(indices)
    has_lo = pc.is_valid(lo).to_numpy(zero_copy_only=False)
    has_hi = pc.is_valid(hi).to_numpy(zero_copy_only=False)
    sound &= ~(has_lo | has_hi) | (value_counts > 0)
    if column.encoding == "binary":
        sound &= _are_ordered(lo, hi, column)
    else:
        lo = pc.fill_null(lo, 0).to_numpy()
        hi = pc.fill_null(hi, 0).to_numpy()
        sound &= ~(has_lo & has_hi) | (lo <= hi)
        sound &= (lo == lo) & (hi == hi)  # noqa: PLR0124 - NaN is no bound
    return _SummaryOfFiles(
        rows=row_counts, nulls=nulls, nans=nans, has_lo=has_lo, has_hi=has_hi, lo=lo, hi=hi, sound=sound
    )


def _are_ordered(lo: pa.Array, hi: pa.Array, column: Column) -> Flags:
    """Return a mask of the data files without a lower bound above the upper one."""
    if not _is_decimal(column):
        inverted = pc.fill_null(pc.greater(lo, hi), False)  # noqa: FBT003 - pyarrow's signature
        is_ordered: Flags = ~inverted.to_numpy(zero_copy_only=False)
        return is_ordered
    pairs = zip(lo.to_pylist(), hi.to_pylist(), strict=True)
    return np.array([_are_ordered_decimals(lower, upper) for lower, upper in pairs], np.bool_)


def _are_ordered_decimals(lo: bytes | None, hi: bytes | None) -> bool:
    for bound in (lo, hi):
        if bound is not None and len(bound) != DECIMAL_BYTES:
            return False
    if lo is None or hi is None:
        return True
    return decimal_from_bytes(lo) <= decimal_from_bytes(hi)


def _is_decimal(column: Column) -> bool:
    return column.type.startswith("decimal")


def _sum_counts(counts: Longs, starts: Longs, sound: Flags) -> pa.Array:
    is_known = sound & np.logical_and.reduceat(counts >= 0, starts)
    return pa.array(np.add.reduceat(counts, starts), mask=~is_known)


def _number_range(kind: np.dtype[Any]) -> tuple[float, float]:
    """Return the least and the greatest value of doubles or 64-bit integers."""
    if kind == np.float64:
        return -np.inf, np.inf
    integers = np.iinfo(np.int64)
    return integers.min, integers.max


def _reduce_bytes(
    values: pa.Array, choose: Callable[..., bytes], starts: Longs, has_bound: Flags, column: Column
) -> list[bytes | None]:
    """Choose the least or the greatest bound of each zone; None for a zone without one."""
    order: Callable[[bytes], Any] = decimal_from_bytes if _is_decimal(column) else bytes
    bounds: list[bytes | None] = []
    for start, is_bounded in zip(starts.tolist(), has_bound.tolist(), strict=True):
        bound = None
        if is_bounded:
            bound = choose(values.slice(start, ZONE_FILES).drop_null().to_pylist(), key=order)
        bounds.append(bound)
    return bounds
