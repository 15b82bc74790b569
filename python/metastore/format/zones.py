"""Zones: what is known of many consecutive data files together, so that a planner reads little of the rest."""

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

    from metastore.format.table_column import Column

    Flags = NDArray[np.bool_]
    Longs = NDArray[np.int64]


IDENTITIES_KEY = "metastore.identities"
"""A footer key of `files`: what tells the data files of each zone from all others; base64."""

_MOST = 1 << 62


def build_zones(rows: pa.Table, columns: Sequence[Column], rows_of_files: Longs) -> pa.Table:
    """The rows of `zones` for rows of `summary`.

    A count is known where those of all its data files are, and a bound where those of all that hold a value are. A zone
    of which a data file has no row, or one that contradicts itself, is unknown: it has no `rows`.
    """
    ordinals = rows["column"].to_numpy()
    parts = []
    for ordinal in np.unique(ordinals).tolist():
        start, end = ordinals.searchsorted([ordinal, ordinal + 1])
        parts.append(_zones_of_column(rows.slice(start, end - start), columns[ordinal], ordinal, rows_of_files))
    return pa.concat_tables([ZONES.empty_table(), *parts])


def read_row_counts(files: pa.Table) -> Longs:
    """How many rows each data file of a block has, by ordinal; -1 where that is not known."""
    found: Longs = pc.fill_null(files.sort_by("file")["rows"], -1).to_numpy()
    return found


def hash_identities(files: pa.Table) -> str:
    """What stands under `IDENTITIES_KEY` of a `files` object.

    Zone by zone 24 bytes, all numbers little-endian: the XXH64 of the paths of its data files in UTF-16, one behind the
    other; the XXH64 of three numbers of 8 bytes for each of them (UTF-16 code units of its path, size, modification
    time or -1); the CRC-32 of its first path in UTF-8, and that of its last. Not SHA-256: a scan of a million files
    computes them, and files are told apart, not protected.
    """
    ordered = files.select(["file", "path", "size", "modified"]).sort_by("file")
    paths = ordered["path"].to_pylist()
    texts = [path.encode("utf-16-le") for path in paths]
    units = np.array([len(text) // 2 for text in texts], np.int64)
    facts = np.stack([units, ordered["size"].to_numpy(), pc.fill_null(ordered["modified"], -1).to_numpy()], axis=1)
    starts = np.arange(0, len(paths), ZONE_FILES)
    ends = np.minimum(starts + ZONE_FILES, len(paths))
    bounds = np.concatenate([[0], np.cumsum(2 * units)])
    of_paths = xxhash_bytes(_buffer(b"".join(texts)), bounds[starts], bounds[ends] - bounds[starts])
    of_facts = xxhash_bytes(_buffer(facts.astype("<i8").tobytes()), starts * 24, (ends - starts) * 24)
    found = b"".join(
        struct.pack("<QQII", int(h), int(f), *(zlib.crc32(paths[i].encode()) for i in (start, end - 1)))
        for h, f, start, end in zip(of_paths, of_facts, starts.tolist(), ends.tolist(), strict=True)
    )
    return base64.b64encode(found).decode()


def _buffer(data: bytes) -> NDArray[np.uint8]:
    return pad_buffer(np.frombuffer(data, np.uint8))


class _Files(NamedTuple):
    """What is known of a column, by data file; -1 and false where it is not."""

    rows: Longs
    nulls: Longs
    nans: Longs
    has_lo: Flags
    has_hi: Flags
    lo: Any
    hi: Any
    sound: Flags

    def empty(self) -> Flags:
        """The data files that hold nothing that bounds enclose."""
        found: Flags = (self.nulls >= 0) & (self.nans >= 0) & (self.rows == self.nulls + self.nans)
        return found


def _zones_of_column(rows: pa.Table, column: Column, ordinal: int, rows_of_files: Longs) -> pa.Table:
    files = _files(rows, column, rows_of_files)
    starts = np.arange(0, len(rows_of_files), ZONE_FILES)
    sound = np.logical_and.reduceat(files.sound, starts)
    sound &= np.add.reduceat(files.rows.astype(np.float64), starts) < _MOST
    zones: dict[str, Any] = {
        "column": np.full(len(starts), ordinal, np.int32),
        "zone": np.arange(len(starts), dtype=np.int32),
        "rows": _sum(files.rows, starts, sound),
        "nulls": _sum(files.nulls, starts, sound),
        "nans": _sum(files.nans, starts, sound),
    }
    if column.encoding is not None:
        bounds = _byte_bounds if column.encoding == "binary" else _number_bounds
        for side, has in (("lo", files.has_lo), ("hi", files.has_hi)):
            # Of a data file without values a bound says nothing; one that should have a bound and has none spoils it.
            known = sound & np.logical_and.reduceat(has | files.empty(), starts)
            known &= np.logical_or.reduceat(has, starts)
            zones[f"{side}_{column.encoding}"] = bounds(files, side, starts, known, column)
    given = {name: pa.array(values, ZONES.field(name).type) for name, values in zones.items()}
    return fill_schema(ZONES, given, len(starts))


def _files(rows: pa.Table, column: Column, rows_of_files: Longs) -> _Files:
    count = len(rows_of_files)
    places = rows["file"].to_numpy()
    once = np.bincount(places, minlength=count) == 1

    def by_file(name: str) -> Longs:
        found = np.full(count, -1, np.int64)
        found[places] = pc.fill_null(rows[name], -1).to_numpy()
        return found

    counted, nulls, nans = by_file("rows"), by_file("nulls"), by_file("nans")
    sound = once & (counted >= 0) & ((rows_of_files < 0) | (counted == rows_of_files))
    sound &= (nulls >= -1) & (nulls <= counted) & (nans >= -1) & (nans <= counted - np.maximum(nulls, 0))
    if column.encoding is None:
        none = np.zeros(count, np.bool_)
        return _Files(counted, nulls, nans, none, none, None, None, sound)
    order = np.full(count, -1, np.int64)
    order[places] = np.arange(len(places))
    taken = pa.array(np.maximum(order, 0), mask=order < 0)
    lo, hi = (rows[f"{side}_{column.encoding}"].combine_chunks().take(taken) for side in ("lo", "hi"))
    has_lo, has_hi = (pc.is_valid(side).to_numpy(zero_copy_only=False) for side in (lo, hi))
    sound &= ~(has_lo | has_hi) | (counted - np.maximum(nulls, 0) - np.maximum(nans, 0) > 0)
    if column.encoding == "binary":
        sound &= _in_order(lo, hi, column)
    else:
        lo, hi = (pc.fill_null(side, 0).to_numpy() for side in (lo, hi))
        sound &= ~(has_lo & has_hi) | (lo <= hi)
        sound &= (lo == lo) & (hi == hi)  # noqa: PLR0124 - NaN is no bound
    return _Files(counted, nulls, nans, has_lo, has_hi, lo, hi, sound)


def _in_order(lo: pa.Array, hi: pa.Array, column: Column) -> Flags:
    if not _is_signed(column):
        inverted = pc.fill_null(pc.greater(lo, hi), False)  # noqa: FBT003 - pyarrow's signature
        ordered: Flags = ~inverted.to_numpy(zero_copy_only=False)
        return ordered
    wrong = [
        any(bound is not None and len(bound) != DECIMAL_BYTES for bound in pair)
        or (None not in pair and decimal_from_bytes(pair[0]) > decimal_from_bytes(pair[1]))
        for pair in zip(lo.to_pylist(), hi.to_pylist(), strict=True)
    ]
    return ~np.array(wrong, np.bool_)


def _is_signed(column: Column) -> bool:
    return column.type.startswith("decimal")


def _sum(counts: Longs, starts: Longs, sound: Flags) -> pa.Array:
    known = sound & np.logical_and.reduceat(counts >= 0, starts)
    return pa.array(np.add.reduceat(counts, starts), mask=~known)


def _number_bounds(files: _Files, side: str, starts: Longs, known: Flags, _column: Column) -> pa.Array:
    values, has, reduce = (files.lo, files.has_lo, np.minimum) if side == "lo" else (files.hi, files.has_hi, np.maximum)
    least, most = (-np.inf, np.inf) if values.dtype == np.float64 else (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    neutral = most if side == "lo" else least
    return pa.array(reduce.reduceat(np.where(has, values, neutral), starts), mask=~known)


def _byte_bounds(files: _Files, side: str, starts: Longs, known: Flags, column: Column) -> list[bytes | None]:
    values = files.lo if side == "lo" else files.hi
    best: Callable[..., bytes] = min if side == "lo" else max
    order: Callable[[bytes], Any] = decimal_from_bytes if _is_signed(column) else bytes
    return [
        best(values.slice(start, ZONE_FILES).drop_null().to_pylist(), key=order) if is_known else None
        for start, is_known in zip(starts.tolist(), known.tolist(), strict=True)
    ]
