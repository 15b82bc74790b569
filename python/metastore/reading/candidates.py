"""Which data files may hold given values of a column: by bounds, then by lists of values and bloom filters."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.bloom_filter import bloom_hashes, may_hold
from metastore.format.object_part import ANY_ROWS
from metastore.format.objects import ObjectRef
from metastore.format.table_column import decimal_type, is_compatible
from metastore.store.contradictions import find_contradictory_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Block
    from metastore.format.table_column import Column
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store

    Places = NDArray[np.int64]


UNKNOWN = -1
_REF = ("name", "length", "sha256", "footer_length", "footer_sha256")


@dataclass(frozen=True)
class CandidateFiles:
    """Pairs of a value and a data file that may hold it.

    Attributes:
        values: Places of the values among those that were asked for.
        files: Places of the files in the snapshot's list.
        frequencies: How many of the file's rows, deleted ones included, have the value; -1: not known, perhaps none.
    """

    values: Places
    files: Places
    frequencies: Places


def find_candidate_files(store: Store, stored: SnapshotFiles, column: Column, values: Sequence[Any]) -> CandidateFiles:
    """Find the data files that may hold values. A file of which nothing is known may hold all of them."""
    asked = _Asked(column, values)
    unknown = np.ones(stored.files.num_rows, dtype=bool)
    found: list[CandidateFiles] = []
    for part in iterate_block_evidence(store, stored, column):
        unknown[part.places] = False
        found.extend(part.located(store, asked))
    left = np.flatnonzero(unknown)
    everything = np.arange(len(values))
    found.append(_pairs(np.tile(everything, len(left)), np.repeat(left, len(values))))
    return CandidateFiles(
        *(np.concatenate([getattr(one, name) for one in found]) for name in ("values", "files", "frequencies"))
    )


class _Asked:
    """The values that are asked for, in order; null and NaN apart."""

    def __init__(self, column: Column, values: Sequence[Any]) -> None:
        self.column = column
        self.nulls = np.flatnonzero([value is None for value in values])
        self.nans = np.flatnonzero([isinstance(value, float) and math.isnan(value) for value in values])
        plain = sorted(set(range(len(values))) - set(self.nulls.tolist()) - set(self.nans.tolist()))
        plain.sort(key=lambda place: _comparable(values[place], column))
        self.places = np.array(plain, dtype=np.int64)
        self.values = [values[place] for place in plain]
        self._comparable = [_comparable(value, column) for value in self.values]

    @cached_property
    def array(self) -> pa.Array:
        kind = {"long": pa.int64(), "double": pa.float64()}.get(str(self.column.encoding), pa.binary())
        return pa.array(self.values, kind)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        return bloom_hashes(self.array)

    def within(self, los: Sequence[Any], his: Sequence[Any]) -> tuple[Places, Places]:
        """For each pair of bounds the values within: the first, and the first one behind them."""
        column = self.column
        first = [0 if lo is None else bisect_left(self._comparable, _comparable(lo, column)) for lo in los]
        behind = [
            len(self.values) if hi is None else bisect_right(self._comparable, _comparable(hi, column)) for hi in his
        ]
        return np.array(first, np.int64), np.array(behind, np.int64)


@dataclass(frozen=True)
class BlockEvidence:
    """The data files of one block that it is asked about.

    Attributes:
        block: The block.
        ordinal: The column's place in it.
        rows: Rows of the summary, one for each file.
        places: The files' places in the snapshot's list.
    """

    block: Block
    ordinal: int
    rows: pa.Table
    places: Places

    def located(self, store: Store, asked: _Asked) -> Iterator[CandidateFiles]:
        """The files of the block that may hold the value."""
        rows = self.counts("rows")
        nulls, nans = self.counts("nulls"), self.counts("nans")
        yield from (_counted(self.places, nulls, place) for place in asked.nulls.tolist())
        yield from (_counted(self.places, nans, place) for place in asked.nans.tolist())
        if len(asked.values):
            empty = (nulls >= 0) & (nulls + np.maximum(nans, 0) == rows)
            yield self._of_values(store, asked, empty)

    def _of_values(self, store: Store, asked: _Asked, empty: NDArray[np.bool_]) -> CandidateFiles:
        encoding = asked.column.encoding
        los, his = (self.rows[f"{end}_{encoding}"].to_pylist() for end in ("lo", "hi"))
        first, behind = asked.within(los, his)
        number = np.where(empty, 0, np.maximum(behind - first, 0))
        rows = np.repeat(np.arange(len(self.places)), number)
        values = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number - first, number)
        frequencies = self._listed(store, asked, rows, values)
        keep = frequencies != 0
        rows, values, frequencies = rows[keep], values[keep], frequencies[keep]
        may = self._may_hold(store, asked, rows, values) | (frequencies > 0)
        return CandidateFiles(asked.places[values[may]], self.places[rows[may]], frequencies[may])

    def _listed(self, store: Store, asked: _Asked, rows: Places, values: Places) -> Places:
        """The frequency of each pair: -1 where the file's list does not tell, 0 where it says that there is none."""
        found = np.full(len(rows), UNKNOWN, np.int64)
        kinds = np.array(self.rows["frequencies"].to_pylist(), object)
        if len(rows) == 0 or not np.isin(kinds[rows], ("top", "duplicates", "complete")).any():
            return found
        width = len(asked.values)
        wanted, listed = rows * width + values, np.zeros(len(self.places), np.int64)
        name = f"value_{asked.column.encoding}"
        for table, inside in self._details(store, "frequencies", [name, "frequency"]):
            row = inside[table["file"].to_numpy()]
            np.add.at(listed, row[row >= 0], 1)
            value = pc.index_in(table[name], value_set=asked.array.cast(table.schema.field(name).type))
            value = value.fill_null(-1).to_numpy()
            match = (row >= 0) & (value >= 0)
            keys, order = row[match] * width + value[match], table["frequency"].to_numpy()[match]
            at = np.argsort(keys)
            place = np.minimum(np.searchsorted(keys[at], wanted), max(len(keys) - 1, 0))
            hit = keys[at][place] == wanted if len(keys) else np.zeros(len(wanted), bool)
            found[hit] = order[at][place[hit]]
        # As many values as were counted: a list that lost some proves nothing.
        whole = (kinds == "complete") & (listed == self.counts("distinct"))
        found[(found == UNKNOWN) & whole[rows]] = 0
        return found

    def _may_hold(self, store: Store, asked: _Asked, rows: Places, values: Places) -> NDArray[np.bool_]:
        may = np.ones(len(rows), bool)
        if len(rows) == 0:
            return may
        for table, inside in self._details(store, "sketches", ["bloom"]):
            for file, bloom in zip(table["file"].to_pylist(), table["bloom"].to_pylist(), strict=True):
                pairs = np.flatnonzero(rows == inside[file]) if bloom else ()
                if len(pairs):
                    may[pairs] = may_hold(bloom, asked.hashes[values[pairs]])
        return may

    def _details(self, store: Store, kind: str, columns: list[str]) -> Iterator[tuple[pa.Table, Places]]:
        """Rows of the column in each detail object of a kind, and for the object's files their row here, or -1."""
        files = store.get(self.block.files).to_pydict()
        row_of = dict(zip(self.rows["file"].to_pylist(), range(len(self.places)), strict=True))
        objects: dict[ObjectRef, dict[int, int]] = defaultdict(dict)
        for place, file in enumerate(files["file"]):
            if file in row_of and files[f"{kind}_name"][place] is not None:
                name, length, *others = (files[f"{kind}_{field}"][place] for field in _REF)
                digest, footer_length, footer_digest = others
                ref = ObjectRef(name, length, digest, ANY_ROWS, footer_length, footer_digest)
                objects[ref][files[f"{kind}_file"][place]] = row_of[file]
        for ref, rows in objects.items():
            part = store.open_part(ref)
            table = part.read_rows(part.groups_of_column(self.ordinal), ["column", "file", *columns])
            table = table.filter(pc.equal(table["column"], self.ordinal))
            inside = np.full(max(rows) + 1, -1, np.int64)
            inside[list(rows)] = list(rows.values())
            # Rows of other data files may say any ordinal: none is as many as memory holds.
            known = table["file"].to_numpy()
            table = table.filter(pa.array((known >= 0) & (known < len(inside))))
            yield table, inside

    def counts(self, name: str) -> Places:
        """How often the files list the value."""
        counts: Places = self.rows[name].fill_null(UNKNOWN).to_numpy().astype(np.int64)
        return counts


def iterate_block_evidence(store: Store, stored: SnapshotFiles, column: Column) -> Iterator[BlockEvidence]:
    """What each block says of the column, each data file once."""
    taken = np.zeros(stored.files.num_rows, dtype=bool)
    for block, live in stored.covered:
        ordinals = {i for i, known in enumerate(block.columns) if is_compatible(known, column)}
        for ref in block.summary:
            for ordinal in ordinals & set(ref.columns):
                rows = store.get(ref.object)
                rows = rows.filter(pc.equal(rows["column"], ordinal))
                rows = rows.filter(pa.array(~find_contradictory_rows(rows, block.columns, len(live))))
                places = live[rows["file"].to_numpy()]
                keep = (places >= 0) & ~taken[places]
                taken[places[keep]] = True
                yield BlockEvidence(block, ordinal, rows.filter(pa.array(keep)), places[keep])


def _counted(places: Places, counts: Places, value: int) -> CandidateFiles:
    """The files of which so many rows are null, or NaN."""
    some = counts != 0
    return _pairs(np.full(some.sum(), value), places[some], counts[some])


def _pairs(values: Places, files: Places, frequencies: Places | None = None) -> CandidateFiles:
    return CandidateFiles(values, files, np.full(len(files), UNKNOWN) if frequencies is None else frequencies)


def _comparable(value: Any, column: Column) -> Any:
    """A stored value as one that Python orders as the format does."""
    if column.encoding == "binary" and decimal_type(column.type):
        return bytes([value[0] ^ 0x80]) + value[1:]
    return value
