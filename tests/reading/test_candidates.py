"""The data files that may contain a value, compared with counting it in every file."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.reading import column_candidates, lookup_keys
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

FILES, ROWS, SPAN = 6, 1_600, 12_000  # more distinct values than a list keeps for certain
KINDS = ["complete", "none", "duplicates", 5, "complete", "none"]


def contents():
    random = np.random.default_rng(11)
    numbers = [pa.array(random.integers(0, SPAN, ROWS)) for _ in range(FILES)]
    words = [pa.array([None if v % 50 == 0 else f"w{v}" for v in random.integers(0, SPAN, ROWS)]) for _ in range(FILES)]
    doubles = [random.integers(0, SPAN, ROWS) / 4 for _ in range(FILES)]
    doubles[0][:7] = np.nan
    doubles[2][:2] = np.nan
    decimals = [
        pa.array([Decimal(int(v)) / 100 - 10 for v in random.integers(0, SPAN, ROWS)], pa.decimal128(38, 6))
        for _ in range(FILES)
    ]
    return {
        "bigint": numbers,
        "string": words,
        "double": [pa.array(values) for values in doubles],
        "decimal(38,6)": decimals,
    }


CONTENTS = contents()
COLUMNS = {kind: f"c{ordinal}" for ordinal, kind in enumerate(CONTENTS)}
OTHERS = {
    "bigint": [-1, SPAN + 1, 1 << 40],
    "string": ["", "w", "zebra"],
    "double": [-1.0, 0.1, math.inf],
    "decimal(38,6)": [Decimal("-99.99"), Decimal("0.01")],
}


@pytest.fixture(scope="module")
def statistics(tmp_path_factory):
    folder = tmp_path_factory.mktemp("located")
    analyzed_tables.commit_table_level(folder, [Content(kind, files, KINDS) for kind, files in CONTENTS.items()])
    return metastore.open(str(folder))


COUNTS = {kind: [Counter(array.to_pylist()) for array in files] for kind, files in CONTENTS.items()}


def count_rows_per_file(kind, value):
    """How many rows of each file have the value."""
    if not isinstance(value, float) or not math.isnan(value):
        return [counts[value] for counts in COUNTS[kind]]
    return [
        sum(isinstance(element, float) and math.isnan(element) for element in array.to_pylist())
        for array in CONTENTS[kind]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTENTS)
def test_no_file_with_the_value_is_missing_and_frequencies_are_true(statistics, kind):
    sampled = Counter(value for array in CONTENTS[kind] for value in array.to_pylist()[::7] if value is not None)
    for value in [*list(sampled)[:150], *OTHERS[kind], None]:
        counts = count_rows_per_file(kind, value)
        located = {row["path"]: row for row in statistics.locate(COLUMNS[kind], value)}
        for file_number, count in enumerate(counts):
            row = next((row for path, row in located.items() if path.endswith(f"f{file_number}.parquet")), None)
            assert row is not None or count == 0, (value, file_number)
            if row is not None and row["frequency"] is not None:
                assert row["frequency"] == count > 0
                assert row["exact"]
            if KINDS[file_number] == "complete" and count == 0:
                assert row is None


@pytest.mark.parametrize("kind", CONTENTS)
def test_files_are_told_apart(statistics, kind):
    values = [value for value in CONTENTS[kind][0].to_pylist()[:60] if value is not None]
    located = [len(statistics.locate(COLUMNS[kind], value)) for value in values]
    assert sum(located) < 0.75 * FILES * len(values)


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_frequency_is_never_that_of_another_value_of_the_same_hash(statistics, kind, monkeypatch):
    for module in (column_candidates, lookup_keys):
        monkeypatch.setattr(module, "bloom_hashes", lambda values: np.zeros(len(values), np.uint64))
    here = Counter(value for value in CONTENTS[kind][0].to_pylist() if value is not None and value == value)  # noqa: PLR0124 - NaN
    low, high = min(here), max(here)
    absent = [value for array in CONTENTS[kind][1:] for value in array.to_pylist() if value is not None]
    absent = [value for value in absent if low < value < high and value not in here][:5]
    for value in [*list(here)[:5], *absent]:
        frequencies = {row["path"]: row["frequency"] for row in statistics.locate(COLUMNS[kind], value)}
        assert next((n for path, n in frequencies.items() if path.endswith("f0.parquet")), 0) == here[value]


def test_nan_is_found_by_its_count(statistics):
    located = statistics.locate("c2", math.nan)
    assert [(row["frequency"], row["exact"]) for row in located] == [(7, True), (2, True)]


def test_values_may_be_given_as_text(statistics):
    value = CONTENTS["decimal(38,6)"][0][0].as_py()
    assert statistics.locate("c3", str(value)).rows == statistics.locate("c3", value).rows


def test_bad_questions(statistics):
    with pytest.raises(InvalidArgument, match="'many' is no bigint"):
        statistics.locate("c0", "many")
    with pytest.raises(ColumnNotFound):
        statistics.locate("c9", 1)
