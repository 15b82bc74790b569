"""ANALYZE of Hudi tables, and what the functions say of them afterwards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import metastore
from hudi.conftest import COLUMNS, ROW, append, create, location, write
from metastore import errors
from planner.plans import conf, files_read, physical, rows

pytestmark = pytest.mark.spark


def analyze(spark, table, **more):
    return metastore.analyze(spark, table, progress=False, **more)


def summary(spark, table, **more):
    return {row["column_name"]: row for row in metastore.summary(spark, table, **more)}


def test_ours_comes_before_sparks_own_and_a_path_is_the_same_table(spark, filled):
    (row,) = spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    assert (row.format, row.files, row.files_read, row.rows, row.committed) == ("hudi", 4, 4, 400, True)
    by_path = f"hudi.`{location(spark, filled)}`"
    again = analyze(spark, by_path)
    assert (again.files_read, again.committed) == (0, False)
    statistics = summary(spark, filled)
    assert summary(spark, by_path) == statistics
    assert {name for name, row in statistics.items() if not row["exact"]} == {
        "_hoodie_file_name"
    }  # longer than edges are
    assert statistics["id"]["approx_unique"] == statistics["id"]["count"] == 400
    assert (statistics["s"]["min"], statistics["s"]["max"]) == ("s00000", "s00399")
    assert (statistics["x"]["max"], statistics["day"]["max"], statistics["st.a"]["max"]) == (
        "99.75",
        "2024-01-04",
        "399",
    )
    assert list(statistics)[:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert [row["frequency"] for row in metastore.frequencies(spark, filled, "v", 2)] == [58, 57]
    located = spark.sql(f"SELECT path FROM metastore.locate('{filled}', 'id', 42)").collect()
    assert len(located) == 1


def test_keys_are_located_among_rows_that_were_changed(spark, filled):
    analyze(spark, filled)
    spark.sql(f"UPDATE {filled} SET v = 9 WHERE id = 42")
    spark.sql(f"DELETE FROM {filled} WHERE id = 43")
    keys = spark.createDataFrame([(7,), (42,), (43,), (250,)], "id bigint")
    located = metastore.locate(spark, filled, ["id"], keys).collect()
    assert [(row.id, row.position) for row in sorted(located)] == [(7, None), (42, None), (250, None)]
    assert len({row.path for row in located}) == 2
    with pytest.raises(errors.UnsupportedTable, match="CREATE TABLE"):
        metastore.locate(spark, f"hudi.`{location(spark, filled)}`", ["id"], keys)


def test_sql_takes_paths(spark, filled):
    path = f"hudi.`{location(spark, filled)}`"
    (row,) = spark.sql(f"ANALYZE TABLE {path} COMPUTE STATISTICS FOR COLUMNS id, s").collect()
    assert (row.format, row.files_read, row.columns, row.committed) == ("hudi", 4, 2, True)
    assert spark.sql(f"ANALYZE TABLE {path} COMPUTE STATISTICS NOSCAN").collect()[0].files_read == 0
    assert summary(spark, filled)["id"]["max"] == "399"
    with pytest.raises(Exception, match=r"METASTORE_TABLE_NOT_FOUND.*nowhere"):
        spark.sql("ANALYZE TABLE hudi.`/nowhere/at/all` COMPUTE STATISTICS")


def test_appends_and_updates_read_the_new_and_changed_files_only(spark, filled):
    analyze(spark, filled)
    append(spark, filled, 400, 450, 1)
    report = analyze(spark, filled)
    assert (report.files, report.files_read, report.rows) == (5, 1, 450)
    spark.sql(f"UPDATE {filled} SET v = -1 WHERE id = 120")
    report = analyze(spark, filled)
    assert (report.files, report.files_read) == (5, 1)
    assert {file["deleted_rows"] for file in metastore.files(spark, filled)} == {0}
    assert summary(spark, filled)["v"]["min"] == "-1"
    assert summary(spark, filled)["v"]["exact"] is True
    assert len(metastore.snapshots(spark, filled)) == 3


def test_of_rows_that_log_files_of_older_tables_change_no_count_is_known(spark, table):
    create(spark, table, kind="mor", **{"hoodie.write.table.version": "6"})
    append(spark, table, 0, 200, 2)
    analyze(spark, table)
    assert (summary(spark, table)["id"]["count"], summary(spark, table)["id"]["null_count"]) == (200, 0)
    spark.sql(f"UPDATE {table} SET v = NULL WHERE id = 120")
    assert analyze(spark, table).rows is None
    counts = "count, null_count, null_percentage, nan_count, top_count, distinct_error"
    for source in (f"metastore.summary('{table}')", f"metastore.summary('{table}', file => :changed)"):
        (changed,) = (file["path"] for file in metastore.files(spark, table) if file["deleted_rows"] is None)
        args = {"changed": changed} if "changed" in source else {}
        assert {tuple(row) for row in spark.sql(f"SELECT {counts}, exact FROM {source}", args=args).collect()} == {
            (*[None] * 6, False)
        }
    (untouched,) = (file["path"] for file in metastore.files(spark, table) if file["deleted_rows"] == 0)
    assert summary(spark, table, file=untouched)["id"]["count"] == 100
    by_location = metastore.open(location(spark, table)).summary()
    assert [{**row, "current": None} for row in metastore.summary(spark, table)] == list(by_location)
    newest = metastore.snapshots(spark, table)[-1]
    assert (newest["rows"], newest["live_size_bytes"]) == (None, None)


def test_instants_answer_for_themselves(spark, table):
    create(spark, table)
    append(spark, table, 0, 200, 2)
    first = analyze(spark, table).snapshot
    append(spark, table, 200, 300, 1)
    stale = summary(spark, table)["id"]
    assert (stale["max"], stale["current"], stale["files"], stale["files_total"]) == ("199", False, 2, 3)
    analyze(spark, table)
    assert summary(spark, table)["id"]["max"] == "299"
    assert summary(spark, table, at=first)["id"]["max"] == "199"
    assert len(metastore.files(spark, table, at=first)) == 2
    assert len(metastore.files(spark, table)) == 3


def test_partitions(spark, table):
    create(spark, table, f"{COLUMNS}, p STRING", "PARTITIONED BY (p)")
    append(spark, table, 0, 200, files=2, row=f"{ROW}, concat('p', id DIV 100) AS p")
    with pytest.raises(errors.InvalidArgument, match="no data file with p = zz"):
        analyze(spark, table, partition={"p": "zz"})
    with pytest.raises(errors.InvalidArgument, match="id is not a partition column"):
        analyze(spark, table, partition={"id": 1})
    statement = f"ANALYZE TABLE {table} PARTITION (p = 'p1') COMPUTE STATISTICS"
    (row,) = spark.sql(f"{statement} FOR COLUMNS id").collect()
    assert (row.files_read, row.columns) == (1, 1)
    assert spark.sql(statement).collect()[0].files_read == 1
    assert analyze(spark, table).files == 2
    assert (summary(spark, table)["p"]["min"], summary(spark, table)["p"]["max"]) == ("p0", "p1")
    assert {file["partition"]["p"] for file in metastore.files(spark, table)} == {"p0", "p1"}
    for condition, matching in (("p = 'p1'", 100), ("p = 'p1' AND id = 20", 0), ("p >= 'p0' AND id = 20", 1)):
        assert spark.sql(f"SELECT id FROM {table} WHERE {condition}").count() == matching


def test_tables_that_were_never_written(spark, table):
    create(spark, table)
    assert (analyze(spark, table).files, analyze(spark, table).rows) == (0, 0)
    assert summary(spark, table)["id"]["count"] == 0
    append(spark, table, 0, 10, 1)
    assert analyze(spark, table).rows == 10


def test_a_table_dropped_and_created_again_has_none_of_the_old_files(spark, table):
    create(spark, table)
    append(spark, table, 0, 100, 1)
    table_path = location(spark, table)
    analyze(spark, table)
    copied = f"{table_path.removeprefix('file:')}_kept"
    shutil.copytree(f"{table_path.removeprefix('file:')}/_metastore", copied)
    spark.sql(f"DROP TABLE {table}")
    create(spark, table)
    append(spark, table, 500, 600, 1)
    shutil.copytree(copied, f"{table_path.removeprefix('file:')}/_metastore")
    assert spark.sql(f"SELECT id FROM {table} WHERE id = 550").count() == 1
    with pytest.raises(errors.NoStatistics):
        summary(spark, table)
    assert analyze(spark, table).files_read == 1
    assert summary(spark, table)["id"]["min"] == "500"


def test_unknown_columns_and_tables_are_refused_with_near_names(spark, filled, tmp_path):
    with pytest.raises(errors.ColumnNotFound, match="day"):
        analyze(spark, filled, columns=["dya"])
    with pytest.raises(errors.MetastoreError, match="nowhere"):
        analyze(spark, f"hudi.`{tmp_path}/nowhere`")


def test_columns_that_are_added_are_null_in_older_files(spark, table):
    create(spark, table, "id BIGINT, n INT, st STRUCT<a: INT>, ts BIGINT")
    row = "id, CAST(id AS INT) AS n, named_struct('a', CAST(id AS INT)) AS st, id AS ts"
    append(spark, table, 0, 10, files=1, row=row)
    analyze(spark, table)
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (added INT)")
    append(spark, table, 10, 20, files=1, row=f"{row}, 7 AS added")
    assert analyze(spark, table).files == 2
    statistics = summary(spark, table)
    assert (statistics["n"]["max"], statistics["added"]["max"], statistics["added"]["null_count"]) == ("19", "7", 10)
    for where, files, count in (("added IS NULL", 1, 10), ("added = 7", 1, 10), ("added = 8", 0, 0)):
        query = spark.sql(f"SELECT id FROM {table} WHERE {where}")
        assert len(query.collect()) == count
        assert files_read(query) == [files], where


def declare(spark, path, name, kind, default):
    """Gives a column of the newest schema a type of Avro and a default, as writers with schemas of their own do."""
    jvm = spark._jvm
    storage = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())
    builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
    client = builder.setConf(storage).setBasePath(path).build()
    timeline = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    newest = timeline.lastInstant().get()
    commit = timeline.readCommitMetadata(newest)
    schema = json.loads(commit.getMetadata("schema"))
    (column,) = (field for field in schema["fields"] if field["name"] == name)
    column |= {"type": kind, "default": default}
    commit.addMetadata("schema", json.dumps(schema))
    written = jvm.java.io.ByteArrayOutputStream()
    client.getCommitMetadataSerDe().getInstantWriter(commit).get().writeToStream(written)
    (file,) = Path(path, ".hoodie", "timeline").glob(f"{newest.requestedTime()}_*commit")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.write_bytes(bytes(written.toByteArray()))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_older_files_of_columns_that_are_never_null(spark, tmp_path, kind):
    """With a default in Avro they are no more null than that: Spark shows what its memory holds, 0."""
    path, options = str(tmp_path / "table"), {"hoodie.datasource.write.table.type": kind}
    write(path, spark.range(0, 20, 1, 2).selectExpr("id", "id AS ts"), **options)
    new = "CAST(IF(id < 0, NULL, 7) AS INT) AS added"
    write(path, spark.range(20, 30, 1, 1).selectExpr("id", new, "id AS ts"), **options)
    declare(spark, path, "added", "int", 42)
    named = f"declared_{kind.lower()}"
    with conf(spark, hoodie__enable__data__skipping="false"):
        spark.sql(f"CREATE TABLE {named} (id BIGINT, ts BIGINT, added INT) USING hudi LOCATION '{path}'")
        for name in (named, f"hudi.`{path}`"):
            analyze(spark, name)
            for where in ("added = 0", "added = 42", "added IS NULL", "added < 7", "added = 7", "id = 3"):
                for read, source in ((spark.read.format("hudi").load, path), (spark.table, named)):
                    with conf(spark, spark__metastore__enabled="false"):
                        true = rows(read(source).where(where).select("id"))
                    assert rows(read(source).where(where).select("id")) == true, (where, source)
    spark.sql(f"DROP TABLE {named}")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_without_hudis_own_columns(spark, tmp_path, kind):
    path = str(tmp_path / "table")
    options = {"hoodie.populate.meta.fields": "false", "hoodie.datasource.write.table.type": kind}
    columns = ("id", "id % 7 AS v", "id AS ts")
    write(path, spark.range(0, 400, 1, 4).selectExpr(*columns), **options)
    name = f"hudi.`{path}`"
    assert analyze(spark, name).files_read == 4
    assert list(summary(spark, name)) == ["id", "v", "ts"]
    changed = spark.range(10, 20, 1, 1).selectExpr("id", "-1L AS v", "id + 1000 AS ts")
    write(path, changed, **options, **{"hoodie.datasource.write.operation": "upsert"})
    for _ in range(2):
        for where, count in {"id = 42": 1, "id = 15": 1, "v = -1": 10, "ts > 1005": 10, "id >= 390": 10}.items():
            frame = spark.read.format("hudi").load(path).where(where)
            assert len(frame.collect()) == count, where
        analyze(spark, name)
    frame = spark.read.format("hudi").load(path).where("id = 305")
    assert [row.v for row in frame.collect()] == [4]
    assert files_read(frame) == [1]


@pytest.mark.parametrize("mode", ["MetadataOnly", "FullRecord"])
def test_bootstrapped_tables_are_read_whole(spark, tmp_path, mode):
    source, path = tmp_path / "source", tmp_path / "bootstrapped"
    spark.range(0, 400, 1, 4).selectExpr("id", "CAST(id % 7 AS INT) AS v").write.parquet(str(source))
    options = {
        "hoodie.table.name": "bootstrapped",
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "id",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.mode.selector": f"org.apache.hudi.client.bootstrap.selector.{mode}BootstrapModeSelector",
    }
    nothing = spark.createDataFrame([], "id BIGINT, v INT")
    nothing.write.format("hudi").options(**options).mode("overwrite").save(str(path))
    frame = spark.read.format("hudi").load(str(path)).where("id = 250")
    assert [row.v for row in frame.collect()] == [5]
    assert "bootstrapped" in physical(frame)
    with pytest.raises(errors.UnsupportedTable, match="bootstrapped"):
        analyze(spark, f"hudi.`{path}`")


def test_the_listing_of_queries_that_run_is_left_alone(spark, filled):
    df = spark.table(filled)
    assert df.count() == 400
    index = df._jdf.queryExecution().analyzed().collectLeaves().head().relation().location()
    identity = spark._jvm.System.identityHashCode

    def listing() -> int:
        owner = index.getClass()
        while "cachedAllInputFileSlices" not in [field.getName() for field in owner.getDeclaredFields()]:
            owner = owner.getSuperclass()
        field = owner.getDeclaredField("cachedAllInputFileSlices")
        field.setAccessible(True)
        return identity(field.get(index))

    before = listing()
    assert metastore.analyze(spark, filled, progress=False).files_total == 4
    assert listing() == before
