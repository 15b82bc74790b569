"""The index of values by file, compared with counting in every file: lists, their reading, what is carried over."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import metastore
from kernel.samples import ARROW, column, values
from metastore.format.object_schemas import TABLE_FREQUENCIES
from metastore.format.value_postings import read_postings
from metastore.table_level.value_index_job import EarlierIndex, make_postings
from metastore.table_level.value_rows import VALUE_ROWS
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

LONG = column("bigint")


def rows_of(triples):
    rows = [{"column": 3, "value_long": v, "listed": f, "frequency": n} for v, f, n in triples]
    return pa.Table.from_pylist(rows, VALUE_ROWS)


def counted(table):
    """Value and file to frequency."""
    listed = table["value_long"].to_pylist()
    return {(listed[r], f): n for r, f, n in zip(*(array.tolist() for array in read_postings(table)), strict=True) if n}


@pytest.mark.parametrize("files", [1, 2, 9, 500])
def test_each_value_once_with_all_its_files(files):
    random = np.random.default_rng(files)
    triples = [
        (int(v), int(f), 1 + int(v % 3)) for v, f in zip(*random.integers(0, (60, files), (900, 2)).T, strict=True)
    ]
    expected = Counter()
    for value, file, number in triples:
        expected[value, file] += number
    postings = make_postings(rows_of(triples), LONG, files)
    assert postings.schema == TABLE_FREQUENCIES
    assert counted(postings) == expected
    totals = Counter()
    for (value, _), number in expected.items():
        totals[value] += number
    ordered = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    assert list(zip(postings["value_long"].to_pylist(), postings["frequency"].to_pylist(), strict=True)) == ordered
    for row in postings.to_pylist():
        assert (row["files_sparse"] is None) != (row["files_dense"] is None)
        number = sum(value == row["value_long"] for value, _ in expected)
        assert (row["files_dense"] is not None) == (2 * number >= files)


def test_what_is_known_of_files_that_are_still_there_is_carried_over():
    triples = [(value, file, value + file) for value in range(1, 30) for file in range(40) if (value * file) % 3 == 0]
    earlier = make_postings(rows_of(triples), LONG, 40)
    now = np.array([-1 if file % 5 == 0 else file + 100 for file in range(40)])
    result = EarlierIndex(None, {3: 8}, now).carry_over(earlier)
    assert set(result["column"].to_pylist()) == {8}
    names = ("value_long", "listed", "frequency")
    carried = {(v, f): n for v, f, n in zip(*(result[name].to_pylist() for name in names), strict=True)}
    assert carried == {(v, now[f]): n for v, f, n in triples if now[f] >= 0}


@pytest.mark.slow
@pytest.mark.spark
def test_every_type_and_kind_of_list(tmp_path, spark):
    contents = {}
    for spark_type in ARROW:
        arrays = [
            values(spark_type, profile, 200, seed) for seed, profile in enumerate(("few", "many", "nulls", "few"))
        ]
        contents[spark_type] = Content(spark_type, arrays, ["duplicates", "complete", 3, "none"])
    _, snapshot = analyzed_tables.commit_table_level(
        tmp_path, list(contents.values()), context=spark.sparkContext, distribution=True
    )
    assert snapshot.distribution == tuple(range(len(contents)))
    opened = metastore.open(str(tmp_path))
    paths = [row["path"] for row in opened.files()]
    for ordinal, (spark_type, content) in enumerate(contents.items()):
        of = column(spark_type)
        per_file = [dict(analyzed_tables.count_values(array.cast(ARROW[spark_type]), of)) for array in content.files]
        listed = opened.frequencies(f"c{ordinal}")
        total = Counter()
        for counts in per_file:
            total.update({"NaN" if v != v else v: n for v, n in counts.items()})  # noqa: PLR0124 - NaN
        assert [row["frequency"] for row in listed] == sorted(total.values(), reverse=True), spark_type
        raw = opened.view("frequencies", column=f"c{ordinal}").to_pylist()
        encoding = f"value_{of.encoding}"
        for row in raw:
            value = row[encoding]
            name = "NaN" if isinstance(value, float) and math.isnan(value) else value
            holding = {}
            for path, counts in zip(paths, per_file, strict=True):
                number = {("NaN" if v != v else v): n for v, n in counts.items()}.get(name)  # noqa: PLR0124 - NaN
                if number:
                    holding[path] = number
            assert dict(row["files"]) == holding, (spark_type, value)
