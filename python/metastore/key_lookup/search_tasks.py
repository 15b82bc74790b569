"""What tasks do to locate keys: they have numpy and pyarrow, and none of the driver's libraries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.reading.candidates import CandidateSearch
from metastore.reading.lookup_keys import KeyBatch
from metastore.store.arrow_blobs import open_object_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from metastore.reading.evidence import ColumnEvidence
    from metastore.spark_jobs.task_store import TaskStore


SLICE = "slice"
"""The column that names a slice of the data files."""

_KEYS_AT_ONCE = 1 << 18


def search_slices(
    place: TaskStore, slices: Sequence[Sequence[ColumnEvidence]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Look for keys in slices of the data files."""
    searches: dict[int, CandidateSearch] = {}
    for keys in _large(batches):
        numbers = keys[SLICE]
        for number in numbers.unique().to_pylist():
            if number not in searches:
                searches[number] = CandidateSearch(
                    slices[number], partial(open_object_part, place.uri, access=place.access)
                )
            part = keys.filter(pc.equal(numbers, number)).drop_columns([SLICE])
            searches[number].add(KeyBatch.from_table(part, [one.column for one in slices[number]]))
    found = [np.packbits(search.found).tobytes() for search in searches.values()]
    yield pa.record_batch([pa.array(list(searches), pa.int64()), pa.array(found, pa.binary())], [SLICE, "found"])


def _large(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches in fewer and larger ones: a step a file is made for each."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= _KEYS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
