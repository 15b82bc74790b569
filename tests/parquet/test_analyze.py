"""ANALYZE of plain Parquet, by path and by name, and what queries make of it."""

from __future__ import annotations

import os
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metastore
from formats.spoiled_files import cut, garble_footer, keep_magic_number, write_other_text
from metastore import errors
from metastore.adapters import refusals
from metastore.cli.doctor_checks import OK, WARNING
from metastore.cli.doctor_store_checks import check_statistics
from metastore.format.data_files import DataFile
from metastore.format.table_column import Column
from metastore.pipeline import block_task, compute
from metastore.pipeline import young_files as module
from parquet.conftest import append, settle
from planner.plans import check, conf

ID = Column(key='["id"]', path=("id",), type="bigint", encoding="long")
pytestmark = pytest.mark.spark


def by_path(folder) -> str:
    return f"parquet.`{folder}`"


def analyze(spark, table, **more):
    return metastore.analyze(spark, table, progress=False, **more)


def summary(spark, table, **more):
    return {row["column_name"]: row for row in metastore.summary(spark, table, **more)}


def test_the_statement_that_is_recommended_makes_the_statistics(spark, folder, table):
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS")  # Spark's own, which is silent
    filtered = f"SELECT * FROM {table} WHERE id = 5"
    computed = set()
    for ask in (lambda: metastore.summary(spark, table), lambda: metastore.filtered_summary(spark, filtered)):
        with pytest.raises(errors.NoStatistics) as raised:
            list(ask())
        computed.add(str(raised.value).split("Run: ")[1])
    assert computed == {f"ANALYZE TABLE parquet.`file:{folder}` COMPUTE STATISTICS FOR ALL COLUMNS"}
    spark.sql(computed.pop()).collect()
    assert set(summary(spark, table)) == {row["column_name"] for row in metastore.filtered_summary(spark, filtered)}
    check(spark, filtered, [1])


def test_whose_analyze_a_name_gets_is_said_where_statistics_are_missing(spark, folder, table):
    with pytest.raises(
        errors.NoStatistics, match=r"Spark's own until spark\.metastore\.analyze\.formats has parquet\. Run"
    ):
        metastore.summary(spark, table)
    with conf(spark, spark__metastore__analyze__formats="parquet"), pytest.raises(errors.NoStatistics) as ours:
        metastore.summary(spark, table)
    with pytest.raises(errors.NoStatistics) as of_a_path:
        metastore.summary(spark, by_path(folder))
    assert "own" not in str(ours.value) + str(of_a_path.value)


@pytest.mark.parametrize("content", [b"PAR1", b"a,b\n1,2\n3,4\n", None], ids=["only a mark", "CSV", "cut"])
def test_a_file_that_hides_the_columns_is_named(spark, folder, content):
    data_file = min(folder.glob("*.parquet"))
    (folder / "aaa.parquet").write_bytes(data_file.read_bytes()[:-9] if content is None else content)
    message = r"METASTORE_UNSUPPORTED_TABLE\] .* of file:\S*/aaa\.parquet\b.* is not a Parquet file.* Replace or remove"
    for ask in (analyze, metastore.summary, metastore.verify):
        with pytest.raises(errors.UnsupportedTable, match=message):
            ask(spark, by_path(folder))
    for statement in ("ANALYZE TABLE {} COMPUTE STATISTICS", "SELECT * FROM metastore.summary('{}')"):
        with pytest.raises(Exception, match=message):
            spark.sql(statement.format(by_path(folder)))


def test_properties_of_a_table_of_the_session_catalog_count(spark, table):
    properties = "'metastore.ranks.columns' = 'v', 'metastore.analyze.atuo' = 'true'"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})")
    assert [refusal.subject for refusal in analyze(spark, table).refused] == ["table property metastore.analyze.atuo"]
    assert {row["exact"] for row in metastore.quantiles(spark, table, "v")} == {True}


@pytest.mark.slow
def test_by_path_and_by_name_it_is_one_table(spark, folder, table):
    report = analyze(spark, by_path(folder))
    assert (report.format, report.files, report.files_read, report.rows) == ("parquet", 4, 4, 400)
    again = analyze(spark, table)
    assert (again.files_read, again.committed) == (0, False)
    assert summary(spark, by_path(folder)) == summary(spark, table)
    assert list(summary(spark, table)) == ["id", "v", "s", "st.a", "st.`b.c`"]
    assert [row["column_name"] for row in metastore.open(folder.as_uri()).summary()] == list(summary(spark, table))


def test_sql_takes_over_where_it_is_told_to(spark, folder, table):
    with conf(spark, spark__metastore__analyze__formats="iceberg,delta,hudi,parquet"):
        (row,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS id, s").collect()
        assert (row.format, row.files_read, row.columns) == ("parquet", 4, 2)
        (row,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS").collect()
        assert row.format == "parquet"
        rows = spark.sql("ANALYZE TABLES COMPUTE STATISTICS NOSCAN").collect()
        assert [row.table.split(".")[-1] for row in rows if row.format == "parquet"] == [table]
    assert spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS id").collect() == []
    assert (
        "400 rows"
        in {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}["Statistics"]
    )
    (row,) = spark.sql(f"ANALYZE TABLE {by_path(folder)} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    assert (row.format, row.columns) == ("parquet", 5)


def test_describe_shows_no_numbers_of_an_earlier_analyze_of_spark(spark, folder, table):
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS id")
    append(spark, folder, 400, 500)
    with conf(spark, spark__metastore__analyze__formats="parquet"):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    assert described(spark, table)["Statistics"] == f"{size} bytes, 500 rows"
    assert described(spark, f"{table} id")["max"] == "499"


def test_a_catalog_without_numbers_of_spark_gets_none(spark, folder, table):
    with conf(spark, spark__metastore__analyze__formats="parquet"):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    assert "Statistics" not in described(spark, table)


def described(spark, subject) -> dict[str, str]:
    rows = spark.sql(f"DESCRIBE EXTENDED {subject}").collect()
    return {row[0]: row[1] for row in rows}


@pytest.mark.slow
def test_a_rewritten_file_is_another_file(spark, tmp_path):
    """Of the same path and size: only the modification time tells them apart."""
    folder = tmp_path / "equal"
    for start in (1000, 1100, 1200, 1300):
        append(spark, folder, start, start + 100, "id")
    analyze(spark, by_path(folder))
    first, second = sorted(folder.glob("*.parquet"))[:2]
    assert first.stat().st_size == second.stat().st_size
    first.write_bytes(second.read_bytes())
    first.with_name(f".{first.name}.crc").unlink()
    settle(folder, 1800)
    low = spark.read.parquet(str(second)).selectExpr("min(id)").first()[0]
    assert spark.sql(f"SELECT * FROM {by_path(folder)} WHERE id = {low}").count() == 2
    assert [file["analyzed"] for file in metastore.files(spark, by_path(folder))].count(False) == 1
    report = analyze(spark, by_path(folder))
    assert (report.files, report.files_read, report.rows) == (4, 1, 400)
    assert spark.sql(f"SELECT * FROM {by_path(folder)} WHERE id = {low}").count() == 2
    assert summary(spark, by_path(folder))["id"]["approx_unique"] == 300


@pytest.fixture
def waits(monkeypatch):
    """For how many seconds ANALYZE waits, which it does not do."""
    slept = []
    monkeypatch.setattr(module, "sleep", slept.append)
    return slept


def test_a_file_that_was_just_written_is_not_waited_for(spark, folder, waits):
    for file in folder.glob("*.parquet"):
        os.utime(file, (int(time.time()) - 0.5,) * 2)
    report = analyze(spark, by_path(folder))
    assert (report.files, report.refused, waits) == (4, (), [])


def test_a_file_that_is_written_again_at_once_is_another_file(spark, tmp_path):
    folder = tmp_path / "again"
    append(spark, folder, 1000, 1100, "id")
    (file,) = folder.glob("*.parquet")
    file.with_name(f".{file.name}.crc").unlink()
    table = pq.read_table(file)
    for first in (2000, 3000):
        pq.write_table(table, file)
        analyze(spark, by_path(folder))
        table = table.set_column(0, "id", pa.array(range(first, first + 100)))
        pq.write_table(table, file)  # at once, and as long as before
        check(spark, f"SELECT * FROM {by_path(folder)} WHERE id = {first + 5}", [1])


def test_a_time_in_whole_seconds_is_waited_for(spark, folder, waits, monkeypatch):
    late = min(folder.glob("*.parquet"))
    written = int(time.time()) + 3600
    os.utime(late, (written,) * 2)
    monkeypatch.setattr(module, "_read_common_clock", lambda *_: written * 1000 + 500)
    report = analyze(spark, by_path(folder))
    assert waits == [1.52]  # and two ticks of the clock
    assert report.files == 3  # nobody has slept
    assert [(refusal.subject, refusal.reason) for refusal in report.refused] == [(late.name, refusals.UNSETTLED)]
    assert summary(spark, by_path(folder))["id"]["current"] is False


def test_a_time_that_is_still_to_come_is_not_waited_for(spark, folder, waits):
    late = min(folder.glob("*.parquet"))
    os.utime(late, (time.time() + 3600,) * 2)
    report = analyze(spark, by_path(folder))
    assert (report.files, sum(waits)) == (3, 0)
    assert [(refusal.subject, refusal.reason) for refusal in report.refused] == [(late.name, refusals.UNSETTLED)]


def test_a_directory_that_is_made_again_shows_the_former_numbers_as_such(spark, folder, tmp_path):
    with conf(spark, spark__metastore__store=(tmp_path / "central").as_uri()):
        analyze(spark, by_path(folder))
        shutil.rmtree(folder)
        append(spark, folder, 1000, 1100)
        id_summary = summary(spark, by_path(folder))["id"]
        assert (id_summary["current"], id_summary["max"]) == (False, "399")
        assert [row["current"] for row in metastore.snapshots(spark, by_path(folder))] == [False]
        check(spark, f"SELECT * FROM {by_path(folder)} WHERE id = 1005", [1])
        analyze(spark, by_path(folder))
        id_summary = summary(spark, by_path(folder))["id"]
        assert (id_summary["current"], id_summary["min"]) == (True, "1000")


def describe_both(spark, folder):
    """Yield columns, data files and snapshots of a directory, by SQL and without Spark."""
    verbs = [metastore.summary, metastore.files, metastore.snapshots]
    opened = metastore.open(str(folder))
    names = ("column_name", "current", "exact", "files", "files_total", "snapshot")
    for summary, files, snapshots in (
        [verb(spark, by_path(folder)) for verb in verbs],
        [opened.summary(), opened.files(), opened.snapshots()],
    ):
        yield (
            [{name: row[name] for name in names} for row in summary],
            sorted(({**row, "partition": row["partition"] or {}} for row in files), key=lambda row: row["path"]),
            [row["current"] for row in snapshots],
        )


@pytest.mark.parametrize("by", [(), pytest.param(("v",), marks=pytest.mark.slow)])
def test_the_listing_tells_whether_a_directory_is_current(spark, tmp_path, by):
    folder = tmp_path / "listed"
    for start in (0, 100):
        append(spark, folder, start, start + 100, by=by)
    analyze(spark, by_path(folder))
    first, *_, last = sorted(folder.rglob("part-*.parquet"))

    def check_everywhere(*, current, new):
        """The same answers in SQL and without Spark; then what doctor and the report say."""
        by_sql, by_location = describe_both(spark, folder)
        assert by_sql == by_location
        columns, files, snapshots = by_location
        assert {row["current"] for row in columns} == {current}
        assert snapshots[-1] == current
        assert [row["analyzed"] for row in files].count(False) == new
        assert check_statistics(str(folder)).state == (OK if current else WARNING)
        assert metastore.report(str(folder)).current == current

    check_everywhere(current=True, new=0)
    append(spark, folder, 500, 510, by=by)
    check_everywhere(current=False, new=7 if by else 1)
    analyze(spark, by_path(folder))
    check_everywhere(current=True, new=0)
    os.utime(last, (time.time() - 60,) * 2)
    check_everywhere(current=False, new=1)
    analyze(spark, by_path(folder))
    first.unlink()
    check_everywhere(current=False, new=0)


def test_what_other_programs_write_is_noticed_by_name_too(spark, folder, table):
    analyze(spark, table)
    assert spark.table(table).count() == 400  # the session keeps the listing
    assert summary(spark, table)["id"]["current"] is True
    first = min(folder.glob("part-*.parquet"))
    shutil.copy(first, folder / "added.parquet")
    assert summary(spark, table)["id"]["current"] is False
    assert [row["current"] for row in metastore.snapshots(spark, table)] == [False]
    assert [row["analyzed"] for row in metastore.files(spark, table)].count(False) == 1
    assert metastore.report(spark, table).current is False


def test_a_file_replaced_while_it_is_read_is_refused(spark, folder):
    file = min(folder.glob("*.parquet"))
    stat = file.stat()
    listed = DataFile(
        path=file.name,
        size=stat.st_size,
        rows=100,
        format="parquet",
        open_location=file.as_uri(),
        modified=int(stat.st_mtime * 1000) + 1,
    )
    with pytest.raises(block_task.UnsupportedDataFile, match=refusals.REPLACED):
        block_task.analyze_file(
            block_task.BlockTask(depth="full", columns=(ID,), files=(), defaults={}, absent_is_null=False),
            listed,
            1 << 20,
        )


@pytest.mark.slow
def test_partitions(spark, tmp_path):
    folder = tmp_path / "by day"
    row = "id, DATE '2024-02-28' + CAST(id DIV 2 AS INT) AS day, IF(id = 3, NULL, 'a b/c%') AS p"
    append(spark, folder, 0, 4, row, by=("day", "p"))
    assert analyze(spark, by_path(folder), partition={"day": "2024-02-28"}).files_read == 1
    with pytest.raises(errors.InvalidArgument, match="id is not a partition column"):
        analyze(spark, by_path(folder), partition={"id": 1})
    with pytest.raises(errors.InvalidArgument, match="no data file with p = zz"):
        analyze(spark, by_path(folder), partition={"p": "zz"})
    assert analyze(spark, by_path(folder)).files == 3
    id_summary = summary(spark, by_path(folder))
    assert (id_summary["day"]["min"], id_summary["day"]["max"], id_summary["p"]["null_count"]) == (
        "2024-02-28",
        "2024-02-29",
        1,
    )
    for where in ("id = 3 AND p IS NULL", "day = DATE '2024-02-28' AND id = 1", "p = 'a b/c%' AND id < 2"):
        check(spark, f"SELECT * FROM {by_path(folder)} WHERE {where}")


def test_columns_of_other_case_are_unknown_not_null(spark, tmp_path):
    folder = tmp_path / "cases"
    append(spark, folder, 0, 100, "id AS n")
    append(spark, folder, 100, 200, "id AS N")
    analyze(spark, by_path(folder))
    assert spark.sql(f"SELECT * FROM {by_path(folder)} WHERE n IN (50, 150)").count() == 2
    assert spark.sql(f"SELECT * FROM {by_path(folder)} WHERE n IS NOT NULL").count() == 200


@pytest.mark.slow
def test_files_that_only_spark_reaches(spark, folder, tmp_path, monkeypatch):
    analyze(spark, by_path(folder))
    near = summary(spark, by_path(folder))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("_metastore"))
    monkeypatch.setattr(compute, "find_spark_only_reason", lambda *_, **__: refusals.REMOTE)
    assert analyze(spark, by_path(copy)).files_read == 4
    far = summary(spark, by_path(copy))
    compared = ("min", "max", "approx_unique", "avg", "count", "null_count", "max_len")
    assert {name: [row[key] for key in compared] for name, row in far.items()} == {
        name: [row[key] for key in compared] for name, row in near.items()
    }


def test_bad_names_are_one_clear_error(spark, tmp_path, folder):
    for verb in (analyze, metastore.summary, metastore.verify):
        with pytest.raises(errors.TableNotFound, match="nowhere"):
            verb(spark, by_path(tmp_path / "nowhere"))
    (tmp_path / "nothing").mkdir()
    with pytest.raises(errors.UnsupportedTable, match="no file of it says what its columns are"):
        analyze(spark, by_path(tmp_path / "nothing"))
    with pytest.raises(errors.ColumnNotFound, match="id"):
        analyze(spark, by_path(folder), columns=["idd"])


def test_an_empty_table(spark, tmp_path):
    spark.sql(
        f"CREATE TABLE parquet_empty (id BIGINT, s STRING) USING parquet LOCATION '{(tmp_path / 'empty').as_uri()}'"
    )
    try:
        assert (analyze(spark, "parquet_empty").files, analyze(spark, "parquet_empty").rows) == (0, 0)
        assert summary(spark, "parquet_empty")["id"]["count"] == 0
    finally:
        spark.sql("DROP TABLE parquet_empty")


@pytest.mark.parametrize("spoil", [cut, write_other_text, keep_magic_number, garble_footer])
def test_a_file_that_spark_cannot_read_is_refused_and_the_others_are_analyzed(spark, folder, table, spoil):
    broken = max(folder.glob("*.parquet"))
    spoil(broken)
    broken.with_name(f".{broken.name}.crc").unlink(missing_ok=True)
    settle(folder)
    report = analyze(spark, table)
    assert (report.files, report.rows) == (3, 300)
    ((subject, reason),) = [(refusal.subject, refusal.reason) for refusal in report.refused]
    assert subject == broken.name
    assert reason.startswith("Spark cannot read file:/")
    assert broken.name in reason
    assert reason.count(":") > 1
    assert ".." not in reason
    assert ". :" not in reason
    (row,) = spark.sql(f"ANALYZE TABLE {table_by_path(table, spark)} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    assert [broken.name in refused_file for refused_file in row.refused] == [True]


def table_by_path(table, spark) -> str:
    (location,) = (
        row.data_type for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect() if row.col_name == "Location"
    )
    return f"parquet.`{location}`"
