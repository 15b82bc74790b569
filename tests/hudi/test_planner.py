"""Queries over Hudi tables: fewer files, the same rows, true numbers; writes are never pruned by what may be wrong."""

from __future__ import annotations

import pytest

import metastore
from hudi.conftest import COLUMNS, ROW, append, create, location
from nightly import others_nightly
from planner import written
from planner.plans import check_first, conf, files_read, labels, query_number
from planner.queries import SORTED
from pruning.scala import module

pytestmark = pytest.mark.spark

QUERIES = {
    **SORTED,
    "SELECT id FROM {t} WHERE s LIKE 's0012%'": 1,
    "SELECT id FROM {t} WHERE _hoodie_record_key = '42'": 1,
    "SELECT id FROM {t} WHERE _hoodie_record_key IN ('7', '250') AND _hoodie_commit_time > '2024'": 2,
    "SELECT id FROM {t} WHERE _hoodie_commit_time < '2024'": 0,
}


@pytest.fixture(scope="module", params=["cow", "mor"])
def analyzed(request, spark):
    """Four files, read and never written to by tests."""
    table = f"hudi_read_{request.param}"
    create(spark, table, kind=request.param)
    append(spark, table, 0, 400, 4)
    metastore.analyze(spark, table, progress=False)
    yield table
    spark.sql(f"DROP TABLE {table}")


def test_rows_are_the_same_and_files_fewer(spark, analyzed):
    for query, files in QUERIES.items():
        check_first(spark, query.format(t=analyzed), files)
    with conf(spark, spark__sql__adaptive__enabled="false"):
        for query, files in list(QUERIES.items())[:3]:
            check_first(spark, query.format(t=analyzed), files)


def test_by_path_and_read_optimized(spark, analyzed):
    for options in ({}, {"hoodie.datasource.query.type": "read_optimized"}):
        frame = spark.read.format("hudi").options(**options).load(location(spark, analyzed)).where("id = 42")
        assert (frame.count(), labels(frame)) == (1, ["4 -> 1 files"])


def test_explain_says_how_many(spark, analyzed):
    query = f"SELECT * FROM {analyzed} WHERE id = 7"
    assert labels(spark.sql(query)) == ["4 -> 1 files"]
    kept = [row["kept"] for row in metastore.explain(spark, query)]
    assert sorted(kept) == [False, False, False, True]


def test_the_optimizer_learns_true_numbers(spark, analyzed):
    def estimate(frame) -> int:
        count = frame._jdf.queryExecution().optimizedPlan().stats().rowCount()
        return int(str(count.get())) if count.isDefined() else -1

    by_name = spark.sql(f"SELECT * FROM {analyzed} WHERE id < 100")
    by_path = spark.read.format("hudi").load(location(spark, analyzed)).where("id < 100")
    assert 90 <= estimate(by_name) <= 110
    assert 90 <= estimate(by_path) <= 110
    with conf(spark, spark__metastore__enabled="false"):
        assert estimate(spark.sql(f"SELECT * FROM {analyzed} WHERE id < 100")) == -1


def test_files_that_hudi_leaves_out_are_counted_and_listed(spark, table):
    create(spark, table, "id BIGINT, v INT, ts BIGINT, p STRING", "PARTITIONED BY (p)")
    spark.sql(
        f"INSERT INTO {table} SELECT id, CAST(id % 10 AS INT) AS v, id AS ts, 'p' || id DIV 100 AS p FROM range(400)"
    )
    metastore.analyze(spark, table, progress=False)
    files = spark.sql(f"SELECT count(DISTINCT _hoodie_file_name) FROM {table}").first()[0]
    for where in ("p = 'p1' AND id = 110", "p = 'p1'"):
        query = f"SELECT * FROM {table} WHERE {where}"
        assert labels(spark.sql(query)) == [f"{files} -> 1 files, {files - 1} by Hudi"]
        reasons = [row["reason"] for row in metastore.explain(spark, query)]
        assert (len(reasons), reasons.count("SKIPPED_BY_FORMAT")) == (files, files - 1)


@pytest.fixture(params=["cow", "mor"])
def written_to(request, spark, table):
    create(spark, table, kind=request.param)
    append(spark, table, 0, 400, 4)
    return table


def test_changed_rows_are_found_and_instants_are_their_own(spark, written_to, request):
    t = written_to
    mor = "mor" in request.node.name
    first = metastore.analyze(spark, t, progress=False).snapshot
    spark.sql(f"UPDATE {t} SET v = 9999 WHERE id = 150")
    spark.sql(f"DELETE FROM {t} WHERE id = 250")
    metastore.analyze(spark, t, progress=False)
    frame = spark.sql(f"SELECT id FROM {t} WHERE v = 9999")
    assert [row.id for row in frame.collect()] == [150]
    assert files_read(frame) == [1]
    reasons = [row["reason"] for row in metastore.explain(spark, f"SELECT id FROM {t} WHERE v = 9999")]
    assert reasons.count("KEPT_MAY_MATCH") == 1
    located = spark.sql(f"SELECT * FROM metastore.locate('{t}', 'v', 9999)").collect()
    assert [row.frequency for row in located] == [1]
    opened = metastore.open(location(spark, t)).locate("v", 9999)
    assert [row["path"] for row in opened] == [row.path for row in located]
    assert spark.sql(f"SELECT id FROM {t} WHERE id = 250").count() == 0
    past = spark.sql(f"SELECT id FROM {t} TIMESTAMP AS OF '{first}' WHERE id IN (150, 250) AND v < 9999")
    assert past.count() == 2
    optimized = spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized")
    assert optimized.load(location(spark, t)).where("id = 150 AND v < 10").count() == (1 if mor else 0)
    since = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    changed = since.option("hoodie.datasource.read.begin.instanttime", first).load(location(spark, t)).where("v = 9999")
    assert changed.count() == 1
    assert labels(changed) == []


def test_files_of_later_instants_are_read(spark, written_to):
    metastore.analyze(spark, written_to, progress=False)
    append(spark, written_to, 400, 500, 1)
    frame = spark.sql(f"SELECT * FROM {written_to} WHERE id = 450")
    assert len(frame.collect()) == 1
    assert labels(frame) == ["5 -> 1 files"]
    assert spark.sql(f"SELECT * FROM {written_to} WHERE id = 50").count() == 1


@pytest.mark.parametrize("kind", others_nightly(["mor", "cow"]))
def test_kept_listings_are_of_the_partitions_and_the_instant_of_a_query(spark, table, kind):
    create(spark, table, f"{COLUMNS}, p STRING", "PARTITIONED BY (p)", kind=kind)
    row = f"{ROW}, concat('p', id DIV 100) AS p"
    append(spark, table, 0, 300, files=3, row=row)
    metastore.analyze(spark, table, progress=False)
    table_path = location(spark, table)
    by_path = spark.read.format("hudi").load(table_path)

    def matching_ids(frame, where):
        return sorted(row.id for row in frame.where(where).select("id").collect())

    for _ in range(2):
        for where, ids in {
            "p = 'p0' AND id IN (5, 105)": [5],
            "p = 'p1' AND id IN (5, 105)": [105],
            "p > 'p0' AND id IN (5, 105, 205)": [105, 205],
            "id IN (5, 105, 205)": [5, 105, 205],
        }.items():
            assert matching_ids(spark.table(table), where) == matching_ids(by_path, where) == ids, where
    append(spark, table, 300, 400, files=1, row=row)
    assert matching_ids(spark.table(table), "id IN (5, 305)") == [5, 305]
    spark.sql(f"UPDATE {table} SET v = -1 WHERE id = 105")
    assert matching_ids(spark.table(table), "p = 'p1' AND v = -1") == [105]
    spark.catalog.refreshByPath(table_path)
    assert matching_ids(spark.read.format("hudi").load(table_path), "id IN (5, 305)") == [5, 305]
    spark.sql(f"DELETE FROM {table} WHERE id = 5")
    assert matching_ids(spark.table(table), "id IN (5, 305)") == [305]
    metastore.analyze(spark, table, progress=False)
    assert matching_ids(spark.table(table), "id IN (5, 305)") == [305]


def test_listings_are_bounded_with_the_statistics(spark, analyzed):
    cache = module(spark, "org.metastore.spark.statistics.cache.StatisticsCache")
    frames = []  # a listing goes with its file index, of which each reading of a path has its own

    def grown() -> int:
        before = cache.size()
        frames.append(spark.read.format("hudi").load(location(spark, analyzed)).where("id = 42"))
        assert frames[-1].count() == 1
        return int(cache.size()) - int(before)

    cache.clear()
    grown()
    assert 4 * 800 < grown() < 4 * 2000
    with conf(spark, spark__metastore__cache__size="1b"):
        grown()
        assert cache.size() <= 1


def test_numbers_that_spark_left_in_the_catalog_are_not_used(spark, written_to):
    with conf(spark, spark__metastore__analyze__formats="iceberg,delta"):
        spark.sql(f"ANALYZE TABLE {written_to} COMPUTE STATISTICS")
    append(spark, written_to, 400, 900, 1)
    plan = spark.sql(f"SELECT * FROM {written_to}")._jdf.queryExecution().optimizedPlan()
    assert not plan.stats().rowCount().isDefined()


@pytest.fixture
def lied_about(spark, written_to):
    """A table whose statistics say of `id` what is wrong: a query that trusts them finds nothing."""
    metastore.analyze(spark, written_to, progress=False)
    written.read_store(location(spark, written_to).removeprefix("file:")).change("id", written.shifted).write("1")
    assert spark.sql(f"SELECT * FROM {written_to} WHERE id = 5").count() == 0, "the statistics do not lie"
    return written_to


def permissive(adaptive: str):
    """Settings under which as much as possible is pruned; Hudi cannot bulk-insert into a table what it reads of it."""
    return {
        "spark__metastore__pruneInsideWrites": "true",
        "spark__sql__adaptive__enabled": adaptive,
        "hoodie__spark__sql__insert__into__operation": "insert",
    }


@pytest.mark.parametrize("adaptive", others_nightly(["true", "false"]))
def test_writes_reach_their_rows_whatever_the_statistics_say(spark, lied_about, adaptive):
    t = lied_about
    with conf(spark, **permissive(adaptive)):
        spark.sql(f"INSERT INTO {t} SELECT id + 1000, v, s, x, day, st, ts FROM {t} WHERE id >= 380")
        assert query_number(spark, f"SELECT count(*) FROM {t}") == 420
        spark.sql(f"UPDATE {t} SET v = -1 WHERE id BETWEEN 90 AND 110")
        assert query_number(spark, f"SELECT count(*) FROM {t} WHERE v = -1") == 21
        spark.sql(f"DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE id < 50)")
        assert query_number(spark, f"SELECT count(*) FROM {t}") == 370
        spark.sql(
            f"MERGE INTO {t} t USING (SELECT id, 1000 AS newer FROM range(60, 80)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET t.v = -3, t.ts = s.newer"
        )
        assert query_number(spark, f"SELECT count(*) FROM {t} WHERE v = -3") == 20


@pytest.mark.parametrize("adaptive", others_nightly(["true", "false"]))
def test_an_overwrite_reads_all_that_it_is_to_keep(spark, lied_about, adaptive):
    t = lied_about
    with conf(spark, **permissive(adaptive)):
        spark.sql(f"INSERT OVERWRITE {t} SELECT id, v, s, x, day, st, ts FROM {t} WHERE id < 200")
    assert query_number(spark, f"SELECT count(*) FROM {t}") == 200


@pytest.mark.parametrize(("adaptive", "inside_writes"), [("false", "true"), ("true", "true"), ("true", "false")])
def test_a_merge_without_a_key_and_a_copy_reach_their_rows(spark, table, adaptive, inside_writes):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v INT) USING hudi")
    spark.sql(f"INSERT INTO {table} SELECT id, 0 FROM range(0, 100, 1, 2)")
    metastore.analyze(spark, table, progress=False)
    written.read_store(location(spark, table).removeprefix("file:")).change("id", written.shifted).write("1")
    assert spark.sql(f"SELECT * FROM {table} WHERE id = 5").count() == 0, "the statistics do not lie"
    with conf(spark, **{**permissive(adaptive), "spark__metastore__pruneInsideWrites": inside_writes}):
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT 5L AS id, 9 AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        )
        spark.sql(f"CREATE TABLE {table}_copy USING hudi AS SELECT id, v FROM {table} WHERE id < 50")
    copied = query_number(spark, f"SELECT count(*) FROM {table}_copy")
    spark.sql(f"DROP TABLE {table}_copy")
    assert query_number(spark, f"SELECT count(*) FROM {table}") == 100
    assert query_number(spark, f"SELECT count(*) FROM {table} WHERE v = 9") == 1
    assert copied == 50


def test_streams_are_left_alone(spark, lied_about, tmp_path):
    source = spark.readStream.format("hudi").load(location(spark, lied_about)).where("id = 5")
    query = source.writeStream.format("memory").queryName("seen").option("checkpointLocation", str(tmp_path))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination(60)
    assert spark.sql("SELECT * FROM seen").count() == 1
