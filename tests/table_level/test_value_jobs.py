"""The three algorithms, each forced and chosen by itself, against DuckDB's GROUP BY over all rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import metastore
from kernel.samples import ARROW, column, values
from metastore.spark_jobs.task_store import TaskStore
from metastore.store.data_file_access import LOCAL_FILES
from metastore.table_level.repeat_filter import RepeatFilterBuilder
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions
from metastore.table_level.value_jobs import ValueJobs
from table_level import analyzed_tables
from table_level.analyzed_tables import Content
from table_level.test_value_rows import SETS, expected_frequencies, listed

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def context(spark):
    return spark.sparkContext


def stored(store, snapshot):
    """The rows of the columns' lists, most frequent first, and the summary."""
    summary = {row["column"]: row for row in store.get(snapshot.summary).to_pylist()}
    if not snapshot.frequencies:
        return [], summary
    first, *later_parts = snapshot.frequencies
    heads = store.open_part(first.object).read_rows([0], ["column", "value_long", "frequency"])
    rows = store.get(first.object).slice(heads.num_rows).to_pylist()
    rows += [row for row in heads.to_pylist() if row["column"] in first.columns]
    for ref in later_parts:
        rows += [row for row in store.get(ref.object).to_pylist() if row["column"] in ref.columns]
    rows.sort(key=lambda row: (row["column"], -row["frequency"]))
    return rows, summary


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ["complete", "duplicates"])
@pytest.mark.parametrize("algorithm", ["duplicates", "scatter"])
def test_forced(tmp_path, context, algorithm, kinds):
    sets = [analyzed_tables.integer_files(name, 3, 3000) for name in SETS]
    contents = [Content("bigint", [pa.array(values) for values in arrays], [kinds] * 3) for arrays in sets]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, contents, context=context, algorithm=algorithm)
    rows, summary = stored(store, snapshot)
    for ordinal, arrays in enumerate(sets):
        expected = dict(expected_frequencies(arrays))
        singles = sum(n == 1 for n in expected.values())
        column_summary = summary[ordinal]
        assert (column_summary["distinct"], column_summary["distinct_error"], column_summary["singles"]) == (
            len(expected),
            0,
            singles,
        )
        assert column_summary["frequencies_algorithm"] == algorithm
        kind = "duplicates" if algorithm == "duplicates" and singles else "complete"
        assert column_summary["frequencies"] == kind
        expected_listed = {v: n for v, n in expected.items() if n > 1 or kind == "complete"}
        assert dict(listed(rows, ordinal)) == expected_listed
        assert sum(row["column"] == ordinal for row in rows) == len(expected_listed)
    answer = metastore.open(str(tmp_path)).frequencies("c0", top=10)
    assert [(int(r["value"]), r["frequency"]) for r in answer][:5] == expected_frequencies(sets[0])[:5]
    assert len(metastore.open(str(tmp_path)).frequencies("c1", top=100)) == 100


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("skewed", "scatter"),
        ("uniform", "scatter"),
        ("near unique", "duplicates"),
        ("all unique", "duplicates"),
        ("random", "duplicates"),
    ],
)
def test_chosen_by_the_sums(tmp_path, context, name, algorithm):
    arrays = analyzed_tables.integer_files(name, 3, 2000)
    contents = [Content("bigint", [pa.array(values) for values in arrays], ["complete"] * 3)]
    store, snapshot = analyzed_tables.commit_table_level(
        tmp_path, contents, context=context, threshold=900 if name != "skewed" else 300
    )
    _, summary = stored(store, snapshot)
    assert summary[0]["frequencies_algorithm"] == algorithm
    assert summary[0]["distinct"] == len(expected_frequencies(arrays))


def test_lists_that_are_cut_are_read_again_only_where_that_is_asked_for(tmp_path, context):
    arrays = analyzed_tables.integer_files("near unique", 2, 2000)
    contents = [Content("bigint", [pa.array(values) for values in arrays], ["duplicates", 50])]
    for folder, algorithm, expected in (("a", "auto", "reduce"), ("b", "exact", "scatter")):
        (tmp_path / folder).mkdir()
        store, snapshot = analyzed_tables.commit_table_level(
            tmp_path / folder, contents, context=context, algorithm=algorithm
        )
        summary = store.get(snapshot.summary).to_pylist()[0]
        assert summary["frequencies_algorithm"] == expected
        assert (summary["frequencies"] == "complete") == (algorithm == "exact")


def test_lists_that_are_too_much_for_the_driver_are_reduced_in_tasks(tmp_path, context):
    names = ["skewed", "uniform", "near unique", "sorted"]
    sets = [analyzed_tables.integer_files(name, 3, 2000) for name in names]
    contents = [
        Content("bigint", [pa.array(values) for values in arrays], ["complete", 50, "complete"]) for arrays in sets
    ]
    results = []
    for folder, limit in (("here", 1 << 30), ("apart", 0)):
        (tmp_path / folder).mkdir()
        store, snapshot = analyzed_tables.commit_table_level(
            tmp_path / folder, contents, context=context, driver_bytes=limit
        )
        assert (len(snapshot.frequencies) > 1) == (folder == "apart")
        opened = metastore.open(str(tmp_path / folder))
        answers = [list(opened.frequencies(f"c{i}", top)) for i in range(4) for top in (5, 40, None)]
        results.append((answers, [row["frequencies_floor"] for row in store.get(snapshot.summary).to_pylist()]))
    assert results[0] == results[1]


def test_a_file_that_cannot_be_read_again_leaves_what_the_lists_say(tmp_path, context):
    files = [pa.array([1, 2, 3, 3]), pa.array([2, 9])]
    contents = [Content("bigint", files, ["duplicates"] * 2)]
    store, facts, coverage = analyzed_tables.write_block(tmp_path, contents)
    (tmp_path / "data" / "f1.parquet").write_bytes(b"no")
    jobs = ValueJobs(
        context=context,
        store=TaskStore(str(tmp_path)),
        files={file.path: file for file in facts.files},
        access=LOCAL_FILES,
    )
    snapshot = write_table_level(store, facts, coverage, TableLevelOptions(algorithm="scatter"), jobs=jobs).snapshot
    summary = store.get(snapshot.summary).to_pylist()[0]
    assert (summary["frequencies"], summary["frequencies_algorithm"]) == ("top", "reduce")


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["duplicates", "scatter"])
def test_every_type(tmp_path, context, algorithm):
    contents, wholes = [], []
    for spark_type in ARROW:
        arrays = [values(spark_type, profile, 300, seed) for seed, profile in enumerate(("few", "many", "nulls"))]
        contents.append(Content(spark_type, arrays, ["duplicates", "complete", 3]))
        wholes.append(dict(analyzed_tables.count_values(pa.concat_arrays(arrays), column(spark_type))))
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, contents, context=context, algorithm=algorithm)
    rows, summary = stored(store, snapshot)
    for ordinal, (spark_type, expected) in enumerate(zip(ARROW, wholes, strict=True)):
        expected_listed = {v: n for v, n in expected.items() if n > 1 or summary[ordinal]["frequencies"] == "complete"}
        assert dict(listed(rows, ordinal, column(spark_type).encoding)) == expected_listed, spark_type
        assert summary[ordinal]["distinct"] == len(expected)


def test_repeated_values_are_never_missed():
    random = np.random.default_rng(1)
    hashes = [random.integers(0, 1 << 63, 20_000, dtype=np.uint64) for _ in range(4)]
    hashes[3][:500] = hashes[0][:500]
    parts = []
    for pair in (hashes[:2], hashes[2:]):
        parts.append(RepeatFilterBuilder.for_values(80_000))
        for part in pair:
            parts[-1].add(part)
    merged = parts[0].merge(parts[1])
    assert merged.finish().may_repeat(hashes[3][:500]).all()
    assert merged.finish().may_repeat(np.concatenate([hashes[1], hashes[2]])).sum() <= 5
