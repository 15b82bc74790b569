"""The keys of a join's small side choose the files of the other side when the query runs; rows are those without us."""

from __future__ import annotations

import itertools

import pytest

import lakes
import metastore
from metastore.jvm_session import find_shim_package
from planner import written
from planner.conftest import NO_METRICS
from planner.plans import check, conf, files_read, labels, metrics, physical, plain, rows, scans

pytestmark = pytest.mark.spark

FILES, ROWS = 16, 25
FORMATS = ["parquet", *lakes.FORMATS]
COLUMNS = "k bigint, i int, s string, x double, f float, d date, n decimal(12,2), t timestamp, v int, pad string"
_names = itertools.count()
CAMPAIGN = pytest.mark.campaign
RARE = {"parquet": CAMPAIGN, "delta": CAMPAIGN}  # tests/formats joins them, too


def facts(spark, file: int):
    """The rows of one file: keys ascend from file to file, and each file has a null."""
    low = file * ROWS
    odd = "case when id = 30 then double('NaN') when id = 60 then -0.0D else cast(id as double) end"
    return spark.range(low, low + ROWS, numPartitions=1).selectExpr(
        f"if(id = {low}, null, id) k", "cast(id as int) i", "concat('s', lpad(id, 4, '0')) s",
        f"{odd} x", f"cast({odd} as float) f",
        "date_add(date'2024-01-01', cast(id as int)) d", "cast(id as decimal(12,2)) n",
        "timestamp_seconds(id * 3600) t", "cast(id % 10 as int) v", "repeat(sha2(string(id), 512), 4) pad",
    )  # fmt: skip


@pytest.fixture(scope="module", params=[pytest.param(f, marks=RARE.get(f, ())) for f in FORMATS])
def fact(spark, request, tmp_path_factory):
    """Sixteen analyzed files of each format."""
    name = f"join_fact_{next(_names)}"
    if request.param == "parquet":
        folder = tmp_path_factory.mktemp("join") / "fact"
        for file in range(FILES):
            facts(spark, file).write.mode("append").parquet(str(folder))
        written.describe_parquet_folder(folder).write("1")
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION 'file:{folder}'")
    else:
        name = f"ice.db.{name}" if request.param == "iceberg" else name
        tail = f"TBLPROPERTIES ({NO_METRICS})" if request.param == "iceberg" else ""
        spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING {request.param} {tail}")
        for file in range(FILES):
            facts(spark, file).createOrReplaceTempView("join_rows")
            spark.sql(f"INSERT INTO {name} SELECT * FROM join_rows")
        metastore.analyze(spark, name, progress=False)
    yield name
    spark.sql(f"DROP TABLE {name}")


def create_dimensions(spark, folder) -> list[str]:
    """Small tables to join with: all keys, and some of them; their names."""
    made = {
        "dim": "SELECT id, cast(id as int) small, concat('s', lpad(id, 4, '0')) s, cast(id as double) x, "
        "date_add(date'2024-01-01', cast(id as int)) d, cast(id as decimal(12,2)) n, timestamp_seconds(id * 3600) t, "
        "if(id = 7, null, id) nullable, id % 50 = 3 few FROM range(400)",
        "odd": "SELECT * FROM VALUES (double('NaN')), (0.0D), (null) AS odd(x)",
    }
    for name, query in made.items():
        spark.sql(query).coalesce(1).write.parquet(str(folder / name))
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(f"join_{name}")
    return [f"join_{name}" for name in made]


@pytest.fixture(scope="module", autouse=True)
def dimensions(spark, tmp_path_factory):
    names = create_dimensions(spark, tmp_path_factory.mktemp("dimensions"))
    yield
    for name in names:
        spark.catalog.dropTempView(name)


@pytest.fixture(
    params=[
        ("broadcast", "true"),
        pytest.param(("sort-merge", "false"), marks=CAMPAIGN),
        pytest.param(("sort-merge", "true"), marks=CAMPAIGN),
        pytest.param(("broadcast", "false"), marks=CAMPAIGN),
    ],
    ids="-".join,
)
def joins(spark, request):
    """How Spark joins, and whether it plans again while it runs."""
    way, adaptive = request.param
    threshold = "10485760" if way == "broadcast" else "-1"
    with conf(spark, spark__sql__autoBroadcastJoinThreshold=threshold, spark__sql__adaptive__enabled=adaptive):
        yield way


PRUNED = {
    "SELECT * FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205": 1,
    "SELECT d.s, max(f.pad) FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small IN (30, 390) GROUP BY d.s": 2,
    "SELECT f.* FROM {t} f LEFT SEMI JOIN join_dim d ON f.k = d.id AND d.small = 205": 1,
    "SELECT * FROM {t} WHERE k IN (SELECT id FROM join_dim WHERE small = 205)": 1,
    "SELECT * FROM {t} f WHERE EXISTS (SELECT * FROM join_dim d WHERE d.id = f.k AND d.small = 205)": 1,
    "SELECT * FROM (SELECT * FROM join_dim WHERE small = 205) d LEFT JOIN {t} f ON f.k = d.id": 16,
    "SELECT * FROM {t} f RIGHT JOIN (SELECT * FROM join_dim WHERE small = 205) d ON f.k = d.id": 16,
    "SELECT * FROM {t} f JOIN join_dim d ON f.k = d.id AND f.v = d.small % 10 WHERE d.small = 205": 1,
    "SELECT * FROM {t} f JOIN join_dim d ON f.s = d.s WHERE d.small = 205": 1,
    "SELECT * FROM {t} f JOIN join_dim d ON F.K = D.Id WHERE d.small = 205": 1,
    "SELECT * FROM {t} f JOIN join_dim d ON f.d = d.d WHERE d.small = 205": 1,
    "SELECT * FROM {t} f JOIN join_dim d ON f.n = d.n WHERE d.small = 205": 1,
    "SELECT * FROM {t} f JOIN join_dim d ON f.t = d.t WHERE d.small = 205": 16,
    "SELECT * FROM {t} f JOIN join_dim d ON f.k = d.nullable WHERE d.small < 8": 1,
    "SELECT * FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205 AND f.k > 300": 0,
    "SELECT * FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = -1": 0,
    "SELECT * FROM (SELECT k AS a, pad FROM {t} WHERE v >= 0) f JOIN join_dim d ON f.a = d.id WHERE d.small = 205": 1,
}
"""Queries, and the files that are read of the fact table."""


def same(df) -> list[str]:
    """Rows as texts: NaN equals itself."""
    return [repr(row) for row in rows(df)]


def read_of_fact(df, fact: str) -> list[int]:
    """Files read by the scans of the fact table."""
    return [n for n, scan in zip(files_read(df), scans(df), strict=True) if fact.rsplit(".", 1)[-1] in scan.toString()]


@pytest.mark.parametrize("query", PRUNED)
def test_reads_the_files_that_hold_the_keys(spark, fact, query, joins):
    df = spark.sql(query.format(t=fact))
    assert same(df) == [repr(row) for row in plain(spark, query.format(t=fact))]
    if joins == "broadcast":
        assert all(n <= PRUNED[query] for n in read_of_fact(df, fact)), physical(df)


KEPT = {
    "SELECT * FROM {t} f LEFT JOIN join_dim d ON f.k = d.id AND d.small = 205": 16,
    "SELECT * FROM (SELECT * FROM join_dim WHERE small = 205) d RIGHT JOIN {t} f ON f.k = d.id": 16,
    "SELECT * FROM {t} f FULL JOIN (SELECT * FROM join_dim WHERE small = 205) d ON f.k = d.id": 16,
    "SELECT * FROM {t} f LEFT ANTI JOIN (SELECT * FROM join_dim WHERE small = 205) d ON f.k = d.id": 16,
    "SELECT * FROM {t} WHERE k NOT IN (SELECT id FROM join_dim WHERE small = 205)": 16,
    "SELECT f.k, f.r >= 0 FROM (SELECT k, monotonically_increasing_id() r FROM {t}) f JOIN join_dim d ON f.k = d.id"
    " WHERE d.few": 16,
    "SELECT * FROM {t} f JOIN join_dim d ON f.k > d.id WHERE d.small = 398": None,
    "SELECT * FROM {t} f JOIN join_dim d ON f.k <=> d.nullable WHERE d.small IN (7, 205)": None,
    "SELECT * FROM {t} f JOIN join_dim d ON cast(f.k AS int) <=> d.small WHERE d.small = 205": None,
    "SELECT * FROM {t} f JOIN join_dim d ON f.i = d.id WHERE d.small = 205": None,
    "SELECT * FROM {t} f JOIN join_dim d ON f.x = d.id WHERE d.small IN (0, 205)": None,
    "SELECT * FROM {t} f JOIN join_odd d ON f.x = d.x": None,
    "SELECT * FROM {t} f JOIN join_odd d ON f.f = d.x": None,
    "SELECT * FROM {t} f JOIN join_odd d ON f.x <=> d.x": None,
    "SELECT * FROM {t} f JOIN (SELECT * FROM join_dim LIMIT 2) d ON f.k = d.id WHERE false": None,
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 400) f JOIN join_dim d ON f.k = d.id WHERE d.small = 205": None,
    "SELECT * FROM (SELECT k, count(*) OVER (ORDER BY i) FROM {t}) f JOIN join_dim d ON f.k = d.id WHERE d.few": None,
    "SELECT * FROM (SELECT v, max(k) k FROM {t} GROUP BY v) f JOIN join_dim d ON f.k = d.id WHERE d.few": None,
    "SELECT * FROM (SELECT k FROM {t} UNION ALL SELECT i FROM {t}) f JOIN join_dim d ON f.k = d.id WHERE d.few": None,
}


@pytest.mark.parametrize("query", KEPT)
def test_what_must_not_be_left_out_is_read(spark, fact, query, joins):
    df = spark.sql(query.format(t=fact))
    assert same(df) == [repr(row) for row in plain(spark, query.format(t=fact))]
    if KEPT[query] is not None:
        assert read_of_fact(df, fact) == [KEPT[query]], physical(df)


# Both sides are small beside the other's scan, and it is open how few the rows of SMALLER are.
SMALLER, SMALL = "(SELECT * FROM {t} WHERE v = 5 AND i + length(s) = 210)", "(SELECT * FROM {t} WHERE v IN (5, 6))"
BOTH_SMALL = {
    f"SELECT a.k FROM {SMALLER} a JOIN {SMALL} b ON a.k = b.k": [1, 16],
    f"SELECT a.k FROM {SMALL} a JOIN {SMALLER} b ON a.k = b.k": [1, 16],
    f"SELECT /*+ BROADCAST(b) */ a.k FROM {SMALLER} a JOIN {SMALL} b ON a.k = b.k": [16, 16],
}
"""Queries, and the files that are read of each scan: the side that Spark broadcasts has the keys."""


@pytest.mark.parametrize("query", BOTH_SMALL)
def test_the_side_that_spark_broadcasts_chooses(spark, fact, query, joins):
    df = spark.sql(query.format(t=fact))
    assert rows(df) == plain(spark, query.format(t=fact))
    if joins == "broadcast":
        assert sorted(read_of_fact(df, fact)) == BOTH_SMALL[query], physical(df)


TWICE = {
    # The parts differ in nothing but the keys: neither may be read in the other's place.
    "keys": """SELECT v, count(*), sum(k) FROM (
        SELECT f.v, f.k FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205
        UNION ALL SELECT f.v, f.k FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 30) GROUP BY v""",
    "aggregates": """SELECT v, count(*) FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205 GROUP BY v
        UNION ALL SELECT v, count(*) FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 30 GROUP BY v
        UNION ALL SELECT v, count(*) FROM {t} f GROUP BY v""",
    "cte": """WITH c AS (SELECT f.k, f.v FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.few)
        SELECT a.k, b.v FROM c a JOIN c b ON a.k = b.k + 50""",
    "self": """SELECT a.k, b.k FROM {t} a JOIN {t} b ON a.k = b.k + 1 JOIN join_dim d ON a.k = d.id
        WHERE d.small IN (205, 206)""",
    "chain": "SELECT a.k, b.k FROM {t} a JOIN join_dim d ON a.k = d.id JOIN {t} b ON b.i = d.small WHERE d.few",
    "scalar": """SELECT (SELECT sum(f.v) FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205) a,
        (SELECT sum(f.v) FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small = 30) b""",
    "half": """SELECT * FROM (SELECT v, sum(k) FROM {t} f JOIN join_dim d ON f.k = d.id WHERE d.small < 40 GROUP BY v) a
        JOIN (SELECT v, sum(k) FROM {t} GROUP BY v) b ON a.v = b.v""",
    "itself": "SELECT a.k FROM {t} a JOIN {t} b ON a.k = b.k WHERE b.i = 205",
    "nested": "SELECT a.k FROM {t} a WHERE a.k IN (SELECT b.k FROM {t} b JOIN join_dim d ON b.k = d.id WHERE d.few)",
}


@pytest.mark.parametrize("query", TWICE)
def test_tables_that_are_read_twice(spark, fact, query, joins):
    check(spark, TWICE[query].format(t=fact))


@pytest.fixture
def partitioned(spark):
    """Makes analyzed Iceberg tables with a partition of each value of a column."""
    made = []

    def make(columns: str, by: str, values: str) -> str:
        made.append(f"ice.db.join_parts_{next(_names)}")
        spark.sql(
            f"CREATE TABLE {made[-1]} ({columns}) USING iceberg PARTITIONED BY ({by}) TBLPROPERTIES ({NO_METRICS})"
        )
        spark.sql(f"INSERT INTO {made[-1]} VALUES {values}")
        metastore.analyze(spark, made[-1], progress=False)
        return made[-1]

    yield make
    for name in made:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.skipif(lakes.SPARK != "4.1", reason="recursive queries came with Spark 4.1")
@pytest.mark.parametrize("by", ["manager", "bucket(16, manager)", "id"])
def test_each_step_of_a_recursion_reads_by_keys_of_its_own(spark, partitioned, by):
    table = partitioned("id int, manager int", by, "(1, null), (2, 1), (3, 2), (4, 3)")
    query = f"""WITH RECURSIVE r(id) AS (
        SELECT id FROM {table} WHERE manager IS NULL
        UNION ALL SELECT e.id FROM {table} e JOIN r ON e.manager = r.id) SELECT id FROM r"""
    assert sorted(row.id for row in spark.sql(query).collect()) == [1, 2, 3, 4]


@pytest.mark.parametrize("by", ["id", "bucket(16, id)", "v"])
def test_a_query_may_write_names_in_another_case(spark, partitioned, by):
    table = partitioned("id int, v int", by, "(1, 10), (2, 20), (3, 30), (4, 40)")
    query = f"SELECT f.v FROM {table} f JOIN (SELECT * FROM VALUES (2, 20) AS d(a, b)) d ON f.ID = d.A AND f.V = d.B"
    assert read_of_fact(check(spark, query), table) == [1]


def test_columns_that_differ_in_case_alone_are_two_columns(spark, partitioned):
    with conf(spark, spark__sql__caseSensitive="true"):
        table = partitioned("id int, ID int", "id", "(1, 2), (2, 1), (3, 3)")
        for column, other in (("id", 1), ("ID", 2)):
            query = f"SELECT f.id, f.ID FROM {table} f JOIN (SELECT * FROM VALUES (1) AS d(a)) d ON f.{column} = d.a"
            assert [row[0] for row in rows(spark.sql(query))] == [other]


def test_partitions_of_doubles_are_found_by_each_zero_and_nan(spark, partitioned):
    table = partitioned("x double, v int", "x", "(-0.0D, 1), (1D, 2), (double('NaN'), 3)")
    for value, v in {"0.0D": 1, "-0.0D": 1, "1D": 2, "double('NaN')": 3}.items():
        for side in (f"{value} AS x", f"x FROM VALUES ({value}) AS d(x)", f"x FROM {table} WHERE v = {v}"):
            rows = spark.sql(f"SELECT a.v FROM {table} a JOIN (SELECT {side}) USING (x)").collect()
            assert [row.v for row in rows] == [v], side


def test_the_plan_says_that_keys_choose_files(spark, fact, joins):
    query = f"SELECT f.* FROM {fact} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205"
    df = spark.sql(query)
    assert [label for label in labels(df) if "join" in label] == ["16 -> 16 files, join"]
    df.collect()
    assert read_of_fact(df, fact) == [1]
    if fact.startswith("ice."):
        assert "[Metastore: 16 -> 1 files, join]" in df._jdf.queryExecution().toString()
        joined = [metrics(scan) for scan in scans(df) if "BatchScan" in scan.nodeName()]
        assert joined[0]["metastoreFilesAfter"] == 1
    for setting in ("pruning", "pruning__join"):
        with conf(spark, **{f"spark__metastore__{setting}__enabled": False}):
            off = spark.sql(query)
            assert not any("join" in label for label in labels(off))
            off.collect()
            assert read_of_fact(off, fact) == [16]


def test_cached_tables(spark, fact, joins):
    query = f"SELECT f.k, f.v FROM {fact} f JOIN join_dim d ON f.k = d.id WHERE d.small = 205"
    frame = spark.sql(query).cache()
    try:
        assert rows(frame) == plain(spark, query)
        check(spark, f"SELECT count(*), sum(k) FROM {fact}")
        spark.sql("CACHE TABLE join_cached AS SELECT * FROM join_dim WHERE small = 30")
        check(spark, f"SELECT f.k, d.small FROM {fact} f JOIN join_cached d ON f.k = d.id")
    finally:
        frame.unpersist()
        spark.sql("UNCACHE TABLE IF EXISTS join_cached")
        spark.catalog.dropTempView("join_cached")


def test_writes_read_all_files(spark, fact, tmp_path):
    query = f"SELECT f.* FROM {fact} f JOIN join_dim d ON f.k = d.id WHERE d.few"
    spark.sql(query).write.parquet(str(tmp_path / "copy"))
    assert rows(spark.read.parquet(str(tmp_path / "copy"))) == plain(spark, query)


def test_damaged_statistics_keep_the_files(spark, tmp_path):
    folder = tmp_path / "fact"
    for file in range(4):
        facts(spark, file).write.parquet(str(folder), mode="append")
    statistics = written.describe_parquet_folder(folder)
    for file in statistics.files[:2]:
        file.rows += 1
        file.columns = {}
    statistics.write("1")
    query = f"SELECT f.* FROM parquet.`{folder}` f JOIN join_dim d ON f.k = d.id WHERE d.small IN (30, 90)"
    df = spark.sql(query)
    assert same(df) == [repr(row) for row in plain(spark, query)]


def test_nodes_of_spark_are_made_by_the_names_of_their_fields(spark):
    """Spark 4.3's filter has one field more, whose default looks at those before it, as that of an alias does."""
    assert find_shim_package(spark).scan.PlannerProbe.alias("x") == "1 AS x"
