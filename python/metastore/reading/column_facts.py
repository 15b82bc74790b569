"""Converts the statistics of a column for conditions: bounds become keys, lists and filters `SingleValues`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.sortable_values import is_text, is_wide_decimal, sortable_to_stored
from metastore.format.value_rendering import CUT_BYTES
from metastore.pruning.exclusion import ColumnFacts
from metastore.pruning.keys import encode_keys, key_of_stored, keys_of_doubles
from metastore.reading.column_candidates import ColumnCandidates, read_sound_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Key
    from metastore.reading.evidence import ColumnEvidence
    from metastore.store import Store

_MOST_LISTED = 4_000_000
"""The lists of a column are read if they have at most this many values."""
_MOST_FILTERED = 12_000_000
"""The filters of a column are read if they have at most this many values: they take up to 32 MB."""


def build_column_facts(evidence: ColumnEvidence) -> ColumnFacts:
    """Build the counts and bounds of a column in each data file."""
    lo = _to_keys(evidence.lo, evidence.column)
    hi = _to_keys(evidence.hi, evidence.column)
    if is_text(evidence.column):
        # The rest of an upper bound that was cut, or that ends in zeros, is unknown: zeros take its place.
        for file in np.flatnonzero(~evidence.hi_exact).tolist():
            hi[file] = hi[file].ljust(CUT_BYTES, b"\0")
    return ColumnFacts(
        column=evidence.column,
        analyzed=evidence.analyzed,
        nulls=evidence.nulls,
        nans=evidence.nans,
        empty=evidence.empty,
        lo=lo,
        hi=hi,
        has_lo=evidence.has_lo,
        has_hi=evidence.has_hi,
        exact=evidence.lo_exact & evidence.hi_exact,
    )


class StoredValues:
    """The lists and filters of a column in each data file, as `metastore.pruning.exclusion.SingleValues`."""

    def __init__(self, store: Store, evidence: ColumnEvidence) -> None:
        self._column: Column = evidence.column
        self._filters = evidence.filters.object_index
        self._candidates = ColumnCandidates(evidence, partial(read_sound_rows, store.open_part), with_frequencies=True)
        self._keys: dict[int, Sequence[Key] | None] = {}

    def list_values(self, file: int) -> Sequence[Key] | None:
        """Return all values of a file except null and NaN, or None if unknown."""
        if file not in self._keys:
            self._keys[file] = self._read_keys(file)
        return self._keys[file]

    def _read_keys(self, file: int) -> list[Key] | None:
        values = self._candidates.list_values(file)
        if values is None:
            return None
        return [key_of_stored(value, self._column) for value in values.to_pylist()]

    def has_filter(self, file: int) -> bool:
        """Return whether a file has a bloom filter, or may have."""
        return bool(self._filters[file] >= 0)

    def may_hold(self, file: int, keys: Sequence[Key]) -> bool:
        """Return whether a file may have any of the keys."""
        return bool(keys) and self._candidates.may_hold(file, encode_keys(keys, self._column))


def limit_look_ups(evidence: ColumnEvidence) -> ColumnEvidence:
    """Remove the lists, or the filters, if they have more values than are worth reading."""
    distinct = np.maximum(evidence.distinct, 0)
    has_filter = evidence.filters.object_index >= 0
    if distinct[evidence.complete].sum() > _MOST_LISTED:
        evidence = replace(evidence, complete=np.zeros_like(evidence.complete))
    if distinct[has_filter].sum() > _MOST_FILTERED:
        no_objects = np.full_like(evidence.filters.object_index, -1)
        evidence = replace(evidence, filters=replace(evidence.filters, object_index=no_objects))
    return evidence


def _to_keys(values: NDArray[Any], column: Column) -> NDArray[Any]:
    if column.encoding == "double":
        return keys_of_doubles(values)
    if column.encoding != "binary":
        return values
    keys = np.empty(len(values), object)
    if is_wide_decimal(column):
        keys[:] = [key_of_stored(sortable_to_stored(value, column), column) for value in values]
    else:
        keys[:] = values.tolist()
    return keys
