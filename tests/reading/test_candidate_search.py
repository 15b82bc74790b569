"""The data files that may contain any of some keys, compared with counting keys in every file."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from kernel.samples import ARROW
from metastore.errors import DamagedObject
from metastore.reading.candidates import CandidateSearch
from metastore.reading.evidence import gather_evidence
from metastore.reading.lookup_keys import KeyBatch, take_prefixes
from metastore.reading.snapshot_files import match_data_files
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

FILES, ROWS, SPAN = 6, 1_600, 12_000
KINDS = ["complete", "none", "duplicates", 5, "complete", "none"]


def contents():
    random = np.random.default_rng(5)
    draws = [random.integers(0, SPAN, ROWS) for _ in range(FILES)]
    return {
        "bigint": [pa.array([None if v == 77 else int(v) for v in draw]) for draw in draws],
        "string": [pa.array([None if v % 50 == 0 else f"{'p' * 66}{v}" for v in draw]) for draw in draws],
        "double": [pa.array([math.nan if v % 3_000 == 1 else v / 4 - 100 for v in draw]) for draw in draws],
        "decimal(38,6)": [pa.array([Decimal(int(v)) / 100 - 10 for v in draw], pa.decimal128(38, 6)) for draw in draws],
        "date": [pa.array(draw.astype("datetime64[D]")) for draw in draws],
    }


CONTENTS = contents()
KIND = {kind: ordinal for ordinal, kind in enumerate(CONTENTS)}
NOWHERE = {
    "bigint": [-1, SPAN, 1 << 40],
    "string": ["", "p", "z"],
    "double": [-101.0, 0.1, math.inf, -math.inf],
    "decimal(38,6)": [Decimal("-99.99"), Decimal("0.001")],
    "date": [],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    written_store, facts, coverage = analyzed_tables.write_block(
        tmp_path_factory.mktemp("search"), [Content(kind, files, KINDS) for kind, files in CONTENTS.items()]
    )
    (block,) = (indexed.block for indexed in coverage.blocks)
    # The rows in the list of files of `analyzed_tables` are 1; `evidence` compares with those of the table.
    return written_store, facts, analyzed_tables.Manifest(table=analyzed_tables.IDENTITY, blocks=(block,))


def gather_facts(store, kinds, files=None):
    opened_store, facts, manifest = store
    columns = [facts.columns[KIND[kind]] for kind in kinds]
    return gather_evidence(
        opened_store, match_data_files(opened_store, manifest, files or facts.files), columns
    ), columns


def plain(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def files_with_keys(kinds, keys):
    """Whether each file holds any of the keys."""
    key_values = {tuple(map(plain, key)) for key in keys}
    rows = [zip(*(CONTENTS[kind][file].to_pylist() for kind in kinds), strict=True) for file in range(FILES)]
    return [any(tuple(map(plain, row)) in key_values for row in file_rows) for file_rows in rows]


def key_table(kinds, keys):
    columns = zip(*keys, strict=True)
    return pa.table(
        [pa.array(list(values), ARROW[kind]) for values, kind in zip(columns, kinds, strict=True)], names=kinds
    )


def search(store, kinds, keys):
    evidences, columns = gather_facts(store, kinds)
    candidate_search = CandidateSearch(evidences, store[0].open_part)
    candidate_search.add(KeyBatch.from_table(key_table(kinds, keys), columns))
    return candidate_search.candidates.tolist()


def sampled(kinds, step):
    rows = [zip(*(CONTENTS[kind][file].to_pylist() for kind in kinds), strict=True) for file in range(FILES)]
    return [key for file_rows in rows for key in itertools.islice(file_rows, 3, None, step)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [
        *(pytest.param([kind], marks=pytest.mark.campaign) for kind in CONTENTS),
        ["string", "double"],
        ["date", "bigint"],
    ],
    ids=str,
)
def test_no_file_with_a_key_is_missing(store, kinds):
    for key in [*sampled(kinds, 15), tuple(None for _ in kinds)]:
        for is_candidate, holds in zip(search(store, kinds, [key]), files_with_keys(kinds, [key]), strict=True):
            assert is_candidate or not holds, key
    keys = sampled(kinds, 400)
    assert all(
        is_candidate or not holds
        for is_candidate, holds in zip(search(store, kinds, keys), files_with_keys(kinds, keys), strict=True)
    )


@pytest.mark.parametrize("kind", CONTENTS)
def test_keys_that_are_nowhere_lead_nowhere(store, kind):
    candidate_counts = [sum(search(store, [kind], [(value,)])) for value in NOWHERE[kind]]
    assert sum(candidate_counts) <= len(candidate_counts) / 3


@pytest.mark.slow
def test_files_are_told_apart_and_parts_of_a_key_help_each_other(store):
    keys = sampled(["bigint"], 100)
    candidate_count = sum(sum(search(store, ["bigint"], [key])) for key in keys)
    assert candidate_count < 0.75 * FILES * len(keys)
    swapped = [
        (first, second)
        for (first,), (second,) in zip(sampled(["date"], 100), sampled(["bigint"], 100)[::-1], strict=True)
    ]
    assert sum(sum(search(store, ["date", "bigint"], [key])) for key in swapped) < candidate_count / 2


def test_batches_add_up(store):
    keys = sampled(["string"], 200)
    evidences, columns = gather_facts(store, ["string"])
    candidate_search = CandidateSearch(evidences, store[0].open_part)
    for key in keys:
        candidate_search.add(KeyBatch.from_table(key_table(["string"], [key]), columns))
    assert candidate_search.candidates.tolist() == search(store, ["string"], keys)


def test_more_keys_than_filters_tell_apart_are_not_looked_for(store):
    def opened(ref):
        raise AssertionError(ref)

    evidences, columns = gather_facts(store, ["bigint"])
    for step, is_expected in ((1, True), (SPAN // 10, False)):
        candidate_search = CandidateSearch(evidences, opened)
        candidate_search.add_crowded_files(
            KeyBatch.from_table(key_table(["bigint"], [(value,) for value in range(0, SPAN, step)]), columns)
        )
        assert candidate_search.candidates.tolist() == [is_expected] * FILES
    two, columns = gather_facts(store, ["bigint", "date"])
    candidate_search = CandidateSearch(two, opened)
    candidate_search.add_crowded_files(
        KeyBatch.from_table(key_table(["bigint", "date"], sampled(["bigint", "date"], 1)), columns)
    )
    assert not candidate_search.candidates.any()


def test_what_is_unknown_damaged_or_contradictory_keeps_the_file(store):
    nowhere = key_table(["bigint"], [(-5,)])
    _, facts, _ = store
    changed_files = [replace(file, rows=file.rows + 1) for file in facts.files[:2]]
    changed_files += [replace(file, size=2) for file in facts.files[2:4]]
    evidences, columns = gather_facts(store, ["bigint"], [*changed_files, *facts.files[4:]])
    candidate_search = CandidateSearch(evidences, store[0].open_part)
    candidate_search.add(KeyBatch.from_table(nowhere, columns))
    assert candidate_search.candidates.tolist() == [True] * 4 + [False] * 2

    def damaged(ref):
        raise DamagedObject(ref.name, "it is gone")

    inside = key_table(["bigint"], [(SPAN // 2,)])
    evidences, columns = gather_facts(store, ["bigint"])
    candidate_search = CandidateSearch(evidences, damaged)
    candidate_search.add(KeyBatch.from_table(inside, columns))
    assert candidate_search.candidates.all()


def test_no_keys_no_files(store):
    evidences, columns = gather_facts(store, ["bigint"])
    candidate_search = CandidateSearch(evidences, store[0].open_part)
    candidate_search.add(KeyBatch.from_table(key_table(["bigint"], [(1,)]).slice(1), columns))
    assert not candidate_search.candidates.any()


def test_prefixes_order_as_the_strings_do():
    values = sorted([b"", b"\0", b"a", b"a\0", b"ab", b"b" * 64, b"b" * 65, b"b" * 64 + b"c", b"\xff"])
    prefixes = take_prefixes(pa.array(values, pa.large_binary()).slice(0))
    assert all(prefixes[:-1] <= prefixes[1:])
    assert take_prefixes(pa.array(values, pa.large_binary()).slice(3))[0] == prefixes[3]
