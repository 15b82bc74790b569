"""Lists that tell where values live, cut by hashes: every value is found where it is looked for, in a small part."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from kernel.samples import ARROW, column, values
from metastore.format.documents import to_document
from metastore.format.manifest import Snapshot, SummaryRef
from metastore.format.object_part import ObjectPart
from metastore.format.objects import ObjectRef, encode_object, make_reference
from metastore.format.value_postings import STARTS_KEY, choose_part, decode_hash_starts, hash_column_values
from metastore.reading.value_lookup import look_up_value
from metastore.table_level.value_index_job import (
    choose_object_count,
    count_indexed_rows,
    index_coverage_rows,
    lay_out_postings,
    make_postings,
    rank_by_value,
)
from metastore.table_level.value_rows import VALUE_ROWS
from table_level.analyzed_tables import stored_values

FILES = 7
SOME = 15


def rows_of(ordinal, of, files):
    """The rows that tasks send of a column: each value of each file with its frequency."""
    rows = []
    for file, array in enumerate(files):
        counts = Counter("NaN" if v != v else v for v in stored_values(array, of))  # noqa: PLR0124 - NaN
        rows += [
            {
                "column": ordinal,
                f"value_{of.encoding}": float("nan") if v == "NaN" else v,
                "frequency": n,
                "listed": file,
            }
            for v, n in counts.items()
        ]
    return pa.Table.from_pylist(rows, VALUE_ROWS)


class MemoryStore:
    """Objects in memory, and how much of them is read."""

    def __init__(self):
        self.data, self.read = {}, []

    def put(self, kind, table, groups, extra=None):
        data = encode_object(kind, table, groups, extra)
        ref = make_reference(f"{kind}-{uuid.uuid4()}.parquet", data, table.num_rows)
        self.data[ref.name] = data
        return ref

    def open_part(self, ref):
        def fetch(start, length):
            self.read.append((ref.name, length))
            return self.data[ref.name][start : start + length]

        return ObjectPart(ref, fetch)


def written(store, columns, rows, parts):
    """A snapshot whose lists are cut into so many parts, as the job's tasks write them."""
    refs, indexed_rows = [], defaultdict(lambda: np.zeros(FILES, np.int64))
    for part in range(parts):
        lists = {}
        for ordinal, (of, sent) in enumerate(zip(columns, rows, strict=True)):
            mine = (
                sent.filter(pa.array(choose_part(hash_column_values(sent, of), parts) == part)) if len(sent) else sent
            )
            if mine.num_rows:
                lists[ordinal] = make_postings(mine, of, FILES)
                indexed_rows[ordinal] += count_indexed_rows(lists[ordinal], FILES)
        if lists:
            ref = store.put("table-frequencies", *lay_out_postings(list(lists.values()), [columns[i] for i in lists]))
            refs.append(SummaryRef(ref, tuple(lists), (part, parts)))
    facts = dict.fromkeys(("files", "files_total", "rows", "physical_rows", "size_bytes", "live_size_bytes"), 1)
    return Snapshot(
        id="1",
        analyzed_at="",
        computed="full",
        exact=True,
        columns=columns,
        table_files=refs[0].object,
        frequencies=tuple(refs),
        distribution=tuple(range(len(columns))),
        placed=store.put("table-placed", *index_coverage_rows(indexed_rows)),
        **facts,
    )


def expected_index(rows, of):
    index = defaultdict(dict)
    for row in rows.to_pylist():
        value = row[f"value_{of.encoding}"]
        index["NaN" if value != value else value][row["listed"]] = row["frequency"]  # noqa: PLR0124 - NaN
    return index


@pytest.mark.parametrize("parts", [1, 5])
@pytest.mark.parametrize("profile", ["few", "many", "nulls"])
def test_every_value_of_every_type_is_found_with_all_its_files(parts, profile):
    columns = tuple(column(kind, f"c{i}", str(i)) for i, kind in enumerate(ARROW))
    files = [[values(kind, profile, 300, seed).cast(ARROW[kind]) for seed in range(FILES)] for kind in ARROW]
    rows = [rows_of(ordinal, of, arrays) for ordinal, (of, arrays) in enumerate(zip(columns, files, strict=True))]
    store = MemoryStore()
    snapshot = written(store, columns, rows, parts)
    for of, sent, arrays in zip(columns, rows, files, strict=True):
        number = sum(len(array.drop_null()) for array in arrays)
        expected = expected_index(sent, of)
        for name in list(expected)[:SOME]:
            value = float("nan") if name == "NaN" else name
            looked_up = look_up_value(store, snapshot, of, value, distinct_count=None, value_count=number)
            holding = dict(zip(looked_up.files.tolist(), looked_up.frequencies.tolist(), strict=True))
            assert holding == expected[name], (of.type, value)
            assert look_up_value(store, snapshot, of, value, distinct_count=None, value_count=number + 1) is None


@pytest.mark.parametrize("kind", ["bigint", "string"])
def test_a_value_is_found_in_one_small_part(kind):
    of, random = column(kind), np.random.default_rng(3)
    numbers = np.unique(random.integers(0, 1 << 60, 300_000))
    array = pa.array(numbers) if kind == "bigint" else pa.array([b"%d" % n for n in numbers.tolist()])
    sent = pa.table(
        [
            np.zeros(len(array), np.int32),
            *(array if name == f"value_{of.encoding}" else pa.nulls(len(array), VALUE_ROWS.field(name).type)
              for name in VALUE_ROWS.names[1:4]),
            np.ones(len(array), np.int64), random.integers(0, FILES, len(array)),
        ], schema=VALUE_ROWS,
    )  # fmt: skip
    store = MemoryStore()
    snapshot = written(store, (of,), [sent], 2)
    stored_bytes = sum(map(len, store.data.values()))
    for position in random.integers(0, len(array), 20).tolist():
        store.read.clear()
        looked_up = look_up_value(
            store, snapshot, of, array[position].as_py(), distinct_count=None, value_count=len(array)
        )
        assert looked_up.files.tolist() == [sent["listed"][position].as_py()]
        lists = [length for name, length in store.read if name.startswith("table-frequencies")]
        assert sum(lists) < stored_bytes / 15
        assert len({name for name, _ in store.read}) == 2


def test_row_groups_have_ranges_of_hashes_and_are_in_the_order_of_values():
    of = column("bigint")
    rows = pa.Table.from_pylist(
        [{"column": 0, "value_long": v, "listed": v % FILES, "frequency": 1 + v % 3} for v in range(40_000)], VALUE_ROWS
    )
    table, groups, extra = lay_out_postings([make_postings(rows, of, FILES)], [of])
    starts, at = decode_hash_starts(extra[STARTS_KEY]), 0
    assert len(groups) == len(starts) == 3
    for number, size in enumerate(groups):
        part = table.slice(at, size)
        hashes = hash_column_values(part, of)
        assert hashes.min() == starts[number]
        assert number + 1 == len(groups) or hashes.max() <= starts[number + 1]
        assert (np.diff(rank_by_value(part["value_long"].combine_chunks(), of)) > 0).all()
        at += size
    assert sorted(table["value_long"].to_pylist()) == list(range(40_000))


@pytest.mark.parametrize(("number", "parts"), [(1, 1), (300_000, 2), (2_000_000, 8), (10**9, 500)])
def test_parts_are_small_while_they_are_not_too_many(number, parts):
    assert choose_object_count(number, 2_000_000) == parts


def test_many_columns_share_the_row_groups_of_what_is_told():
    table, groups = index_coverage_rows({ordinal: np.arange(3) for ordinal in range(40)})
    assert (len(groups), sum(groups), table.num_rows) == (14, 120, 120)


def test_a_snapshot_names_parts():
    ref = SummaryRef(ObjectRef(name="x", length=1, sha256="", rows=1, footer_length=1, footer_sha256=""), (0,), (3, 4))
    assert to_document(ref) == to_document(ref.object) | {"columns": [0], "part": [3, 4]}
