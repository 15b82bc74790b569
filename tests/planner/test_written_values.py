"""Lists of values and bloom filters that tests wrote: complete, cut, damaged, lost, at odds with the summary."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metastore.jvm_session import find_shim_package
from planner import written
from planner.plans import check, conf, labels
from planner.written import Values

pytestmark = pytest.mark.spark

FILES = ([0, 3, 3, 9], [0, 4, 6, 9, None], [0, 9])
MANY = [f"s{i:05}" for i in range(0, 3000, 2)]


@pytest.fixture
def folder(tmp_path):
    """Three files whose bounds are the same."""
    for number, values in enumerate(FILES):
        decimals = pa.array([None if v is None else Decimal(v) - 5 for v in values], pa.decimal128(25, 2))
        texts = [None if v is None else f"{v}" for v in values]
        doubles = [None if v is None else v / 2 for v in values]
        columns = {"v": pa.array(values, pa.int64()), "s": texts, "x": doubles, "n": decimals}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    return tmp_path


def with_values(folder, make):
    """Statistics of the files; `make` says what is kept of a column in a file."""
    table_statistics = written.describe_parquet_folder(folder)
    for file in table_statistics.files:
        table = pq.read_table(folder / file.path)
        stored = {c: Counter(written.stored(v) for v in table[c.name].drop_null()) for c in file.columns}
        file.values = {c: make(int(file.path[0]), counts) for c, counts in stored.items()}
    return table_statistics.write()


def complete(_, counts):
    return Values("complete", list(counts.items()))


def filtered(_, counts):
    return Values("none", [], list(counts))


def kept_files(spark, folder, where):
    df = check(spark, f"SELECT * FROM parquet.`{folder}` WHERE {where}")
    rows = spark.sql(
        "SELECT path, kept FROM metastore.explain(:q)", {"q": f"SELECT * FROM parquet.`{folder}` WHERE {where}"}
    )
    file_numbers = sorted(int(row.path[0]) for row in rows.collect() if row.kept)
    assert labels(df) == [f"{len(FILES)} -> {len(file_numbers)} files"]
    return file_numbers


ASKED = {
    "v = 5": [], "v = 3": [0], "v IN (3, 4)": [0, 1], "v = 9": [0, 1, 2], "v <=> 6": [1], "3 = v": [0],
    "s = '4'": [1], "s = '44'": [], "s IN ('3', '6')": [0, 1], "x = 1.5": [0], "x = 0.1": [], "x = double('NaN')": [],
    "n = -2": [0], "n = -1.00": [1], "n = 3.99": [], "n IN (1, 1.5)": [1], "CAST(v AS decimal(20,0)) = 5": [],
    "v = 3 OR s = '6'": [0, 1], "v = 3 AND s = '6'": [], "v = 3 OR v > 8": [0, 1, 2], "v > 2 AND s = '44'": [],
    "v >= 5 AND v <= 5": [], "v = 3 OR v IS NULL": [0, 1], "NOT (v <> 3)": [0], "s LIKE '4'": [1],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("make", [complete, filtered])
def test_single_values(spark, folder, make):
    with_values(folder, make)
    assert {where: kept_files(spark, folder, where) for where in ASKED} == ASKED


@pytest.mark.slow
def test_files_with_no_other_values(spark, folder):
    with_values(folder, complete)
    condition = {
        "v NOT IN (0, 9)": [0, 1],
        "v NOT IN (0, 3, 9)": [1],
        "s NOT IN ('0', '9')": [0, 1],
        "v <> 0": [0, 1, 2],
    }
    condition |= {"v NOT IN (0, 9, 4, 6)": [0], "n NOT IN (-5, 4)": [0, 1], "x NOT IN (0, 4.5, 1.5) OR v IS NULL": [1]}
    assert {where: kept_files(spark, folder, where) for where in condition} == condition
    with_values(folder, filtered)
    assert all(kept_files(spark, folder, where) == [0, 1, 2] for where in condition if "NULL" not in where)


def test_lists_that_leave_values_out_prove_nothing(spark, folder):
    def short(number, counts):
        listed = list(counts.items())[:1]
        return Values("top" if number else "complete", listed)  # the first file's list lost what it claims to have

    with_values(folder, short)
    assert kept_files(spark, folder, "v = 5") == [0, 1, 2]
    assert kept_files(spark, folder, "v NOT IN (0, 9)") == [0, 1, 2]


def test_a_list_of_more_rows_than_there_are_proves_nothing(spark, folder):
    with_values(folder, lambda _, counts: Values("complete", [(value, count + 1) for value, count in counts.items()]))
    assert kept_files(spark, folder, "v = 5") == [0, 1, 2]


def test_nulls_that_nobody_counted_leave_lists_without_proof(spark, folder):
    statistics = with_values(folder, complete)
    statistics.change("v", lambda _, row: {**row, "nulls": None}).write()
    assert kept_files(spark, folder, "v = 5") == [0, 1, 2]
    assert kept_files(spark, folder, "s = '44'") == []


@pytest.mark.parametrize("make", [complete, filtered])
@pytest.mark.parametrize("harm", ["lost", "cut", "changed"])
def test_damaged_details_keep_the_files(spark, folder, make, harm):
    with_values(folder, make)
    find_shim_package(spark).statistics.cache.StatisticsCache.clear()  # equal objects are read once, wherever they are
    for path in [*folder.glob("_metastore/objects/frequencies-*"), *folder.glob("_metastore/objects/sketches-*")]:
        data = path.read_bytes()
        path.unlink()
        if harm == "cut":
            path.write_bytes(data[: len(data) // 2])
        elif harm == "changed":
            path.write_bytes(data[:4] + bytes([byte ^ 0x55 for byte in data[4:40]]) + data[40:])
    assert kept_files(spark, folder, "v = 5") == [0, 1, 2]
    assert kept_files(spark, folder, "v = 55") == []


def test_a_filter_of_no_possible_size_proves_nothing(spark, folder, monkeypatch):
    monkeypatch.setattr(written, "_bloom", lambda *_: bytes(40))
    with_values(folder, filtered)
    assert kept_files(spark, folder, "v = 5") == [0, 1, 2]


def test_long_lists_of_texts(spark, tmp_path):
    pq.write_table(pa.table({"s": MANY}), tmp_path / "0.parquet")
    for number in (1, 2):
        pq.write_table(pa.table({"s": [MANY[0], MANY[-1]]}), tmp_path / f"{number}.parquet")
    with_values(tmp_path, complete)
    assert kept_files(spark, tmp_path, "s = 's00500'") == [0]
    assert kept_files(spark, tmp_path, "s = 's00501'") == []
    assert kept_files(spark, tmp_path, f"s NOT IN {(MANY[0], MANY[-1])}") == [0]


def test_more_than_a_thousand_values_are_looked_up(spark, folder):
    with_values(folder, complete)
    absent = ", ".join(map(str, [*range(10, 1200), 5, -7]))
    assert kept_files(spark, folder, f"v IN ({absent})") == []
    assert kept_files(spark, folder, f"v IN ({absent}) AND s = '44'") == []
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="0"):
        assert kept_files(spark, folder, f"v IN ({absent})") == []


def test_no_time_to_look_up(spark, folder):
    with_values(folder, complete)
    with conf(spark, spark__metastore__planning__timeout="0s"):
        check(spark, f"SELECT * FROM parquet.`{folder}` WHERE v = 5")


def test_explain_says_what_is_known_of_the_values(spark, folder):
    def mixed(number, counts):
        return complete(number, counts) if number == 1 else filtered(number, counts)

    with_values(folder, mixed)
    query = f"SELECT * FROM parquet.`{folder}` WHERE v = 5 AND s >= '0'"
    rows = spark.sql("SELECT * FROM metastore.explain(:q) ORDER BY path", {"q": query}).collect()
    assert {(row.reason, row.kept, row.conjunct) for row in rows} == {("SKIPPED_BY_VALUES", False, rows[0].conjunct)}
    assert [row.statistic for row in rows] == [
        "v in [0, 9], 0 of 4 rows null, bloom filter",
        "v in [0, 9], 1 of 5 rows null, all 4 values listed",
        "v in [0, 9], 0 of 2 rows null, bloom filter",
    ]
