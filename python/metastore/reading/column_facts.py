"""Statistics of a column as conditions ask them: bounds as keys, and single values that are listed or filtered."""

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

_MOST_LISTED, _MOST_FILTERED = 4_000_000, 12_000_000
"""Of so many values at most are the lists, or the filters, of a column read: the latter take up to 32 MB."""


def build_column_facts(evidence: ColumnEvidence) -> ColumnFacts:
    """What is known of a column in each data file."""
    exact = evidence.lo_exact & evidence.hi_exact
    lo, hi = _keys(evidence.lo, evidence.column), _keys(evidence.hi, evidence.column)
    if is_text(evidence.column):
        # What follows an upper bound that is cut, or ends in zeros, is not known.
        for file in np.flatnonzero(~evidence.hi_exact).tolist():
            hi[file] = hi[file].ljust(CUT_BYTES, b"\0")
    return ColumnFacts(
        evidence.column,
        evidence.known,
        evidence.nulls,
        evidence.nans,
        evidence.empty,
        lo,
        hi,
        evidence.has_lo,
        evidence.has_hi,
        exact,
    )


class StoredValues:
    """The single values of a column in each data file: `metastore.pruning.exclusion.SingleValues`."""

    def __init__(self, store: Store, evidence: ColumnEvidence) -> None:
        """Nothing is read before it is asked for."""
        self._column: Column = evidence.column
        self._filters = evidence.filters.which
        self._candidates = ColumnCandidates(evidence, partial(read_sound_rows, store.open_part), with_frequencies=True)
        self._known: dict[int, Sequence[Key] | None] = {}

    def listed(self, file: int) -> Sequence[Key] | None:
        """All values of a file but null and NaN, where they are known."""
        if file not in self._known:
            values = self._candidates.list_values(file)
            found = None if values is None else [key_of_stored(value, self._column) for value in values.to_pylist()]
            self._known[file] = found
        return self._known[file]

    def has_filter(self, file: int) -> bool:
        """Whether a file has a bloom filter, or may have."""
        return bool(self._filters[file] >= 0)

    def may_hold(self, file: int, keys: Sequence[Key]) -> bool:
        """Whether a file may have any of some values."""
        return bool(keys) and self._candidates.may_hold(file, encode_keys(keys, self._column))


def limit_look_ups(evidence: ColumnEvidence) -> ColumnEvidence:
    """The same without lists, or filters, of more values than are worth reading."""
    distinct = np.maximum(evidence.distinct, 0)
    listed, filtered = distinct[evidence.complete].sum(), distinct[evidence.filters.which >= 0].sum()
    if listed > _MOST_LISTED:
        evidence = replace(evidence, complete=np.zeros_like(evidence.complete))
    if filtered > _MOST_FILTERED:
        nowhere = np.full_like(evidence.filters.which, -1)
        evidence = replace(evidence, filters=replace(evidence.filters, which=nowhere))
    return evidence


def _keys(values: NDArray[Any], column: Column) -> NDArray[Any]:
    if column.encoding == "double":
        return keys_of_doubles(values)
    if column.encoding != "binary":
        return values
    found = np.empty(len(values), object)
    if is_wide_decimal(column):
        found[:] = [key_of_stored(sortable_to_stored(value, column), column) for value in values]
    else:
        found[:] = values.tolist()
    return found
