"""The rows of keys, compared with looking at every row of real Iceberg tables."""

from __future__ import annotations

import itertools
import math

import pytest

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument, JarNotFound
from metastore.key_lookup import key_rows, key_sql
from metastore.spark import session
from nightly import others_nightly
from planner.plans import files_read

pytestmark = pytest.mark.spark

ROWS, FILES = 3_000, 6
LONG = "x" * 70
COLUMNS = f"""
    cast(conv(substr(md5(cast(id AS string)), 1, 7), 16, 10) AS bigint) AS id,
    cast(id % 7 AS int) AS few,
    if(id % 11 = 0, NULL, concat('{LONG}', md5(cast(id * 3 AS string)))) AS name,
    CASE WHEN id % 13 = 0 THEN double('NaN') WHEN id % 17 = 0 THEN -0.0D ELSE id / 4.0D END AS x,
    cast(id AS float) / 8 AS f,
    cast(id AS decimal(10,2)) / 4 AS price,
    cast(id * 1000003 AS decimal(38,6)) AS wide,
    date_add(date'2024-01-01', cast(id AS int)) AS day,
    timestamp_micros(id * 1000001) AS at,
    id % 2 = 0 AS even,
    cast(md5(cast(id AS string)) AS binary) AS raw,
    named_struct('a', id, 'b.c', cast(id AS string)) AS st,
    array(id) AS many
"""
_names = itertools.count()


def created(spark):
    name = f"ice.db.located_{next(_names)}"
    rows = spark.range(ROWS).selectExpr(*_split(COLUMNS)).repartition(FILES)
    rows.writeTo(name).using("iceberg").tableProperty("write.distribution-mode", "none").tableProperty(
        "write.delete.mode", "merge-on-read"
    ).create()
    return name


def _split(columns):
    parts, depth, current = [], 0, ""
    for letter in columns:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts, current = [*parts, current], ""
        else:
            current += letter
    return [*parts, current]


@pytest.fixture(scope="module")
def table(spark):
    name = created(spark)
    metastore.analyze(spark, name, progress=False)
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def changing(spark):
    name = created(spark)
    metastore.analyze(spark, name, progress=False)
    yield name
    spark.sql(f"DROP TABLE {name}")


def plain(value):
    """A value that equals what Spark says equals it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return bytes(value) if isinstance(value, bytearray) else value


def rows_of(frame):
    return sorted((tuple(map(plain, row)) for row in frame.collect()), key=repr)


def brute_force_rows(spark, table, columns, keys):
    """Every row of the table that has one of the keys, by looking at all."""
    key_values = {tuple(map(plain, row)) for row in keys.collect()}
    rows = spark.sql(f"SELECT {', '.join(columns)}, _file, _pos FROM {table}").collect()
    plain_rows = (tuple(map(plain, row)) for row in rows)
    return sorted((row for row in plain_rows if row[: len(columns)] in key_values), key=repr)


def check(spark, table, columns, keys):
    located = metastore.locate(spark, table, columns, keys)
    assert rows_of(located) == brute_force_rows(spark, table, columns, keys)
    return located


def sample_keys(spark, table, columns, share=31):
    """Keys of some of the table's rows, twice, and as many that it does not have."""
    chosen = ", ".join(f"{column} AS `{column.replace('`', '')}`" for column in columns)
    here = spark.sql(f"SELECT {chosen} FROM {table} WHERE pmod(xxhash64(st.a), {share}) = 0")
    return here.unionAll(here).unionAll(spark.sql(f"SELECT {', '.join('NULL' for _ in columns)}"))


def materialize(spark, frame):
    """The rows that it has now."""
    return spark.createDataFrame(frame.toArrow(), frame.schema)


ASKED = [
    ["id"], ["few"], ["name"], ["x"], ["f"], ["price"], ["wide"], ["day"], ["at"], ["even"], ["raw"], ["st.a"],
    ["few", "name"], ["name", "x"], ["x", "wide", "id"], ["even", "day"], ["at", "raw"],
]  # fmt: skip


@pytest.mark.parametrize("by", ["planner", "search"])
@pytest.mark.parametrize("columns", others_nightly(ASKED, 5), ids="-".join)
def test_all_rows_of_the_keys_are_found_and_no_others(spark, table, columns, by, monkeypatch):
    if by == "search":
        monkeypatch.setattr(key_sql, "MOST_KEYS", 0)
    located = check(spark, table, columns, sample_keys(spark, table, columns))
    assert [field.name for field in located.schema][-2:] == ["path", "position"]
    assert [field.dataType.simpleString() for field in located.schema][-2:] == ["string", "bigint"]


def test_nan_null_and_both_zeros_are_keys(spark, table):
    keys = spark.sql("SELECT * FROM VALUES (double('NaN')), (0.0D), (-0.0D), (NULL), (0.25D), (-1D) AS t(x)")
    located = check(spark, table, ["x"], keys)
    assert located.count() > ROWS / 17


@pytest.mark.parametrize(
    "columns", [["id"], *(pytest.param(c, marks=pytest.mark.slow) for c in (["name", "few"], ["x"]))], ids="-".join
)
def test_many_keys_are_looked_for_by_tasks(spark, table, columns, monkeypatch):
    settings = {"_DRIVER_KEYS": 3, "_DRIVER_INTEGERS": 3, "_TASK_FILES": 2, "_TASK_BYTES": 20_000, "_NEARLY_ALL": 1}
    for name, value in settings.items():
        monkeypatch.setattr(key_rows, name, value)
    check(spark, table, columns, sample_keys(spark, table, columns))


@pytest.mark.parametrize("columns", [["id"], ["name", "few"], ["x"]], ids="-".join)
def test_many_keys_of_a_table_that_is_quickly_read_are_joined_with_all_of_it(spark, table, columns, monkeypatch):
    def looked_at(*_):
        raise AssertionError

    monkeypatch.setattr(key_rows, "_collect_keys", looked_at)
    keys = sample_keys(spark, table, columns, 5).cache()
    assert keys.count() > key_sql.PLANNED_KEYS
    check(spark, table, columns, keys)
    monkeypatch.setattr(key_rows, "_QUICK_BYTES", 0)
    with pytest.raises(AssertionError):
        metastore.locate(spark, table, columns, keys)
    keys.unpersist()


def test_a_session_without_the_planner_searches_by_itself(spark, table, monkeypatch):
    def unknown(*_):
        raise JarNotFound("there is none")

    monkeypatch.setattr(session, "call_function", unknown)
    check(spark, table, ["id"], sample_keys(spark, table, ["id"]))


@pytest.mark.slow
def test_keys_at_the_ends_of_their_types(spark):
    name = f"ice.db.located_{next(_names)}"
    ends = {
        "tiny": "-128Y", "small": "32767S", "whole": "-2147483648", "big": "-9223372036854775808L", "even": "false",
        "day": "date'0001-01-01'", "later": "date_from_unix_date(2932897)",
        "at": "timestamp_micros(-62135596800000000L)",
        "text": r"'it''s \\ \' or \u00e9 ☃'", "raw": "X'00FF27'", "price": "-99999999.99BD",
        "wide": "99999999999999999999999999999999999.999BD", "none": "CAST(NULL AS INT)",
    }  # fmt: skip
    made = ", ".join(f"{value} AS {column}" for column, value in ends.items())
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT {made}")
    metastore.analyze(spark, name, progress=False)
    try:
        for columns in ([column] for column in ends):
            keys = spark.sql(f"SELECT {made}").select(*columns)
            assert metastore.locate(spark, name, columns, keys).count() == 1, columns
        assert metastore.locate(spark, name, list(ends), spark.sql(f"SELECT {made}")).count() == 1
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_only_files_that_may_have_the_key_are_read(spark, table, monkeypatch):
    key = spark.sql(f"SELECT id, few FROM {table} ORDER BY id LIMIT 1")
    located = metastore.locate(spark, table, ["few", "id"], key)
    assert len(located.collect()) == 1
    assert files_read(located)[0] < FILES / 2
    monkeypatch.setattr(key_rows, "_DRIVER_INTEGERS", 0)
    assert files_read(_collected(metastore.locate(spark, table, "id", key)))[0] < FILES / 2


@pytest.mark.slow
@pytest.mark.parametrize("column", ["CAST(id AS DOUBLE)", "id"])
@pytest.mark.parametrize("keys", [1, 1001])
def test_a_directory_says_no_row_counts_and_its_statistics_do(spark, tmp_path, column, keys, monkeypatch):
    monkeypatch.setattr(key_rows, "_QUICK_BYTES", 0)
    folder = tmp_path / "rows"
    spark.range(0, 80_000, 1, 8).selectExpr(f"{column} AS k").write.parquet(str(folder))
    name = f"parquet.`{folder}`"
    metastore.analyze(spark, name, progress=False)
    located = metastore.locate(spark, name, "k", spark.range(100, 100 + keys).selectExpr(f"{column} AS k"))
    assert located.count() == keys
    assert files_read(_collected(located))[0] == 1


def _collected(frame):
    frame.collect()
    return frame


def test_keys_that_are_nowhere(spark, table):
    keys = spark.sql("SELECT -1 AS id UNION ALL SELECT 1099511627776L")
    located = metastore.locate(spark, table, ["id"], keys)
    assert located.collect() == []
    assert located.columns == ["id", "path", "position"]
    assert metastore.locate(spark, table, ["id"], keys.where("id = 5")).collect() == []


def test_files_that_came_later_are_read(spark, changing):
    spark.sql(f"INSERT INTO {changing} SELECT * FROM {changing} LIMIT 50")
    check(spark, changing, ["id"], sample_keys(spark, changing, ["id"]))
    check(spark, changing, ["few", "wide"], sample_keys(spark, changing, ["few", "wide"]))


def test_deleted_rows_are_not_found(spark, changing):
    keys = materialize(spark, sample_keys(spark, changing, ["id"], 5))
    before = metastore.locate(spark, changing, ["id"], keys).count()
    spark.sql(f"DELETE FROM {changing} WHERE pmod(xxhash64(st.a), 10) = 0")
    after = check(spark, changing, ["id"], keys).count()
    assert 0 < after < before


def test_renamed_promoted_dropped_and_added_columns(spark, changing):
    keys = materialize(spark, sample_keys(spark, changing, ["few", "id"]))
    spark.sql(f"ALTER TABLE {changing} RENAME COLUMN id TO number")
    spark.sql(f"ALTER TABLE {changing} ALTER COLUMN few TYPE bigint")
    check(spark, changing, ["few", "number"], keys.withColumnRenamed("id", "number"))
    spark.sql(f"ALTER TABLE {changing} ADD COLUMN id string")
    added = spark.sql("SELECT 'a' AS id UNION ALL SELECT NULL")
    check(spark, changing, ["id"], added)
    spark.sql(f"INSERT INTO {changing} SELECT *  EXCEPT (id), 'a' AS id FROM {changing} LIMIT 3")
    assert check(spark, changing, ["id"], added.where("id = 'a'")).count() == 3


@pytest.mark.parametrize(
    ("column", "query", "count"),
    [
        ("few", "SELECT 3L AS few UNION ALL SELECT 3000000000", -(-ROWS // 7)),
        ("few", "SELECT 3.0BD AS few UNION ALL SELECT 3.5BD", -(-ROWS // 7)),
        ("few", "SELECT 9.99BD AS few", 0),
        ("price", "SELECT 1 AS price", 1),
        ("price", "SELECT 1.2500BD AS price UNION ALL SELECT 1.2501BD", 1),
        ("f", "SELECT 0.125D AS f UNION ALL SELECT 0.1D UNION ALL SELECT 1e300D", 1),
        ("x", "SELECT float(0.25) AS x", 1),
        ("day", "SELECT date'2024-01-02' AS day", 1),
        ("name", "SELECT NULL AS name", -(-ROWS // 11)),
    ],
)
def test_other_types_are_converted_where_that_is_exact(spark, table, column, query, count):
    assert metastore.locate(spark, table, column, spark.sql(query)).count() == count


@pytest.mark.parametrize(
    ("columns", "query", "error", "text"),
    [
        (["id"], "SELECT '1' AS id", InvalidArgument, "id is string, the table's column is bigint"),
        (["x"], "SELECT 1 AS x", InvalidArgument, "x is int, the table's column is double"),
        (["day"], "SELECT timestamp'2024-01-01 00:00:00' AS day", InvalidArgument, "the table's column is date"),
        (["id"], "SELECT 1 AS other", InvalidArgument, "no column id"),
        (["many"], "SELECT array(1L) AS many", InvalidArgument, "cannot be located"),
        (["idd"], "SELECT 1 AS idd", ColumnNotFound, "id"),
        ([], "SELECT 1 AS id", InvalidArgument, "empty"),
    ],
)
def test_questions_that_have_no_answer(spark, table, columns, query, error, text):
    with pytest.raises(error, match=text):
        metastore.locate(spark, table, columns, spark.sql(query))


@pytest.mark.parametrize("kind", ["iceberg", pytest.param("delta", marks=pytest.mark.slow), "parquet"])
def test_a_table_without_statistics_is_read(spark, kind):
    number = next(_names)
    name = f"ice.db.located_{number}" if kind == "iceberg" else f"located_{number}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, x DOUBLE) USING {kind}")
    spark.sql(f"INSERT INTO {name} SELECT id, IF(id = 5, double('NaN'), id / 2) AS x FROM range(0, 300, 1, 2)")
    for few in (1, 3, 150):
        located = metastore.locate(spark, name, "id", spark.range(5, 5 + few)).collect()
        assert sorted(row.id for row in located) == list(range(5, 5 + few))
        assert all(row.path for row in located)
    numbers = spark.sql("SELECT explode(array(double('NaN'), 1.0D, -7.0D)) AS x")
    assert metastore.locate(spark, name, "x", numbers).count() == 2
    assert metastore.locate(spark, name, ["id", "x"], spark.sql("SELECT 5L AS id, double('NaN') AS x")).count() == 1
    spark.sql(f"DROP TABLE {name}")
