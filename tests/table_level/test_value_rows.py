"""The lists of data files reduced to those of the table, against DuckDB's GROUP BY over all rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from kernel.samples import ARROW, column, values
from metastore.table_level.value_rows import VALUE_ROWS, sum_value_rows
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

SETS = ["skewed", "uniform", "near unique", "all unique", "sorted", "twice", "random"]


def expected_frequencies(arrays):
    rows = pa.table({"v": pa.concat_arrays([pa.array(values) for values in arrays])})  # noqa: F841 - DuckDB finds it
    counted_rows = duckdb.sql(
        "SELECT v, count(*) AS n FROM rows WHERE v IS NOT NULL GROUP BY v ORDER BY n DESC, v"
    ).fetchall()
    return [(value, int(n)) for value, n in counted_rows]


def stored(store, snapshot):
    """The rows of every column's list, in the order of reading, and its summary."""
    rows = pa.concat_tables(store.get(ref.object) for ref in snapshot.frequencies) if snapshot.frequencies else None
    summary = {row["column"]: row for row in store.get(snapshot.summary).to_pylist()}
    return ([] if rows is None else rows.to_pylist()), summary


def listed(rows, ordinal, encoding="long"):
    return [(row[f"value_{encoding}"], row["frequency"]) for row in rows if row["column"] == ordinal]


@pytest.mark.parametrize("name", SETS)
def test_complete_lists_make_the_exact_list(tmp_path, name):
    arrays = analyzed_tables.integer_files(name, 3, 2000)
    files = [pa.array(values) for values in arrays]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("bigint", files, ["complete"] * 3)])
    rows, summary = stored(store, snapshot)
    expected = expected_frequencies(arrays)
    assert listed(rows, 0) == expected
    assert summary[0]["frequencies"] == "complete"
    assert summary[0]["frequencies_algorithm"] == "reduce"
    assert (summary[0]["distinct"], summary[0]["distinct_error"]) == (len(expected), 0)
    assert summary[0]["singles"] == sum(n == 1 for _, n in expected)
    assert not any(row["error"] for row in rows)


@pytest.mark.parametrize("spark_type", ARROW)
def test_every_type(tmp_path, spark_type):
    arrays = [values(spark_type, profile, 500, seed) for seed, profile in enumerate(("few", "many", "nulls", "empty"))]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content(spark_type, arrays, ["complete"] * 4)])
    rows, summary = stored(store, snapshot)
    of = column(spark_type)
    expected = analyzed_tables.count_values(pa.concat_arrays(arrays), of)
    frequencies = listed(rows, 0, of.encoding)
    assert sorted(frequencies, key=str) == sorted(expected, key=str)
    assert [n for _, n in frequencies] == [n for _, n in expected]
    ties = [frequencies[i][0] for i in range(len(frequencies)) if frequencies[i][1] == 1]
    key = (lambda v: int.from_bytes(v, "big", signed=True)) if spark_type == "decimal(38,6)" else None
    if not any(value != value for value in ties):  # noqa: PLR0124 - NaN
        assert ties == sorted(ties, key=key)
    assert summary[0]["distinct"] == len(expected)


def test_wide_decimals_beside_columns_of_other_encodings(tmp_path):
    kinds = ["bigint", "double", "decimal(38,6)", "string"]
    arrays = {kind: [values(kind, "few", 300, seed) for seed in (1, 2)] for kind in kinds}
    store, snapshot = analyzed_tables.commit_table_level(
        tmp_path, [Content(kind, arrays[kind], ["complete"] * 2) for kind in kinds]
    )
    rows, _ = stored(store, snapshot)
    for ordinal, kind in enumerate(kinds):
        expected = analyzed_tables.count_values(pa.concat_arrays(arrays[kind]), column(kind))
        assert sorted(listed(rows, ordinal, column(kind).encoding), key=str) == sorted(expected, key=str)


def test_nan_is_a_value(tmp_path):
    files = [pa.array([1.0, float("nan"), -0.0, None]), pa.array([float("nan"), 0.0, 2.5, 2.5])]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("double", files, ["complete"] * 2)])
    rows, summary = stored(store, snapshot)
    assert [(str(v), n) for v, n in listed(rows, 0, "double")] == [("0.0", 2), ("2.5", 2), ("nan", 2), ("1.0", 1)]
    assert summary[0]["distinct"] == 4


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", [5, 50, 500, "duplicates"])
def test_errors_of_cut_lists_bound_what_is_missing(tmp_path, name, kind):
    arrays = analyzed_tables.integer_files(name, 4, 1000)
    files = [pa.array(values) for values in arrays]
    store, snapshot = analyzed_tables.commit_table_level(
        tmp_path, [Content("bigint", files, [kind] * 3 + ["complete"])], top=700
    )
    rows, summary = stored(store, snapshot)
    expected = dict(expected_frequencies(arrays))
    for row in rows:
        missing = expected[row["value_long"]] - row["frequency"]
        assert 0 <= missing <= (row["error"] or 0)
    left_out = set(expected) - {row["value_long"] for row in rows}
    assert max((expected[value] for value in left_out), default=0) <= summary[0]["frequencies_floor"]
    if summary[0]["frequencies"] == "duplicates":
        assert {v: n for v, n in expected.items() if n > 1} == dict(listed(rows, 0))
        assert summary[0]["singles"] == sum(n == 1 for n in expected.values())
        assert (summary[0]["distinct"], summary[0]["distinct_error"]) == (len(expected), 0)
    if name == "sorted":
        assert summary[0]["frequencies"] == "duplicates"


def test_values_single_in_each_of_two_files_are_not_taken_for_singles(tmp_path):
    files = [pa.array([1, 2, 3, 3]), pa.array([2, 9])]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("bigint", files, ["duplicates"] * 2)])
    rows, summary = stored(store, snapshot)
    assert summary[0]["frequencies"] == "top"
    assert summary[0]["frequencies_floor"] == 2
    assert [(row["value_long"], row["frequency"], row["error"]) for row in rows] == [(3, 2, 1)]


def test_a_file_without_a_list_leaves_none(tmp_path):
    files = [pa.array([1, 1]), pa.array([2, 2])]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("bigint", files, ["complete", "none"])])
    rows, summary = stored(store, snapshot)
    assert (rows, summary[0]["frequencies"]) == ([], "none")


def test_files_of_nulls_leave_nothing_out(tmp_path):
    files = [pa.array([1, 1], pa.int64()), pa.nulls(3, pa.int64())]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("bigint", files, ["complete", "none"])])
    rows, summary = stored(store, snapshot)
    assert (listed(rows, 0), summary[0]["frequencies"]) == ([(1, 2)], "complete")


def test_the_ten_most_frequent_of_all_columns_come_first(tmp_path):
    files = [pa.array(np.repeat(np.arange(30), np.arange(30, 0, -1)))]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("bigint", files, ["complete"])] * 20)
    (ref,) = snapshot.frequencies
    assert ref.columns == tuple(range(20))
    rows = store.get(ref.object)
    assert rows["column"].to_pylist()[:200] == [c for c in range(20) for _ in range(10)]
    assert rows["value_long"].to_pylist()[:10] == list(range(10))
    assert rows["value_long"].to_pylist()[200:220] == list(range(10, 30))


def drawn(random, kind, size):
    if kind == "value_long":
        span = random.choice([5, 1 << 20, 1 << 63])
        return pa.array(random.integers(-span, span, size, dtype=np.int64))
    if kind == "value_double":
        return pa.array(random.choice([-np.inf, -1.5, 0.0, 2.25, np.nan, 1e300, *random.normal(size=20)], size))
    if kind == "wide":
        return pa.array([int(v).to_bytes(16, "big", signed=True) for v in random.integers(-9, 9, size)], pa.binary())
    return pa.array([f"v{v}".encode() for v in random.integers(0, 40, size)], pa.binary())


@pytest.mark.parametrize("seed", range(8))
def test_columns_added_up_together_are_those_added_up_alone(seed):
    random = np.random.default_rng(seed)
    kinds = random.choice(["value_long", "value_double", "value_binary", "wide"], 30).tolist()
    parts, wide = [], [ordinal for ordinal, kind in enumerate(kinds) if kind == "wide"]
    for ordinal, kind in [*enumerate(kinds), *enumerate(kinds)]:
        size = int(random.integers(1, 300))
        column_arrays = {
            "column": pa.array(np.full(size, ordinal, np.int32)),
            kind if kind != "wide" else "value_binary": drawn(random, kind, size),
            "frequency": pa.array(random.integers(1, random.choice([3, 1 << 40]), size)),
            "listed": pa.array(random.integers(0, 2, size)),
        }
        parts.append(
            pa.table(
                [column_arrays.get(field.name, pa.nulls(size, field.type)) for field in VALUE_ROWS], schema=VALUE_ROWS
            )
        )
    alone = [sum_value_rows(pa.concat_tables(parts[at :: len(kinds)]), wide) for at in range(len(kinds))]
    together = sum_value_rows(pa.concat_tables(parts[at] for at in random.permutation(len(parts))), wide)
    texts = [str(pa.concat_tables(tables).to_pylist()) for tables in (alone, [together])]  # NaN is shown alike
    assert texts[0] == texts[1]
    counted = sum(pa.compute.sum(part["frequency"]).as_py() for part in parts)
    assert pa.compute.sum(together["frequency"]).as_py() == counted
    for of_column in alone:
        frequencies = of_column["frequency"].to_pylist()
        assert frequencies == sorted(frequencies, reverse=True)
