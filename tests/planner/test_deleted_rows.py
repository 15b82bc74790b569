"""Data files with deletes prove what their live rows allow: rows stay those of the query without us."""

from __future__ import annotations

import itertools
import random

import pytest

import metastore
from formats.kinds import DELTA, FORMATS, ICEBERG
from lakes import SPARK
from pipeline.internals import delete_positions, delete_where_equal
from planner.aggregates.answered import compare, is_answered
from planner.plans import conf, files_read, labels, plain

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, part INT, a INT, g INT, s STRING, x DOUBLE, nothing INT"
ROW = (
    "id, CAST(id DIV 100 AS INT) AS part, CAST(if(id DIV 100 = 2 OR id % 10 = 3, NULL, id % 40) AS INT) AS a,"
    " CAST(id % 5 AS INT) AS g, concat('s', lpad(CAST(id AS STRING), 4, '0')) AS s,"
    " CAST(if(id DIV 100 = 1, 7, id) AS DOUBLE) AS x, CAST(NULL AS INT) AS nothing"
)
NAMES = "id, part, a, g, s, x, nothing"
WHERES = ("", "WHERE id >= 100", "WHERE id < 250", "WHERE part = 1", "WHERE part IN (0, 2)", "WHERE a IS NOT NULL")
FUNCTIONS = (
    "count(*)", "count(id)", "count(a)", "count(nothing)", "min(part)", "max(part)", "min(g)", "max(g)", "max(id)",
    "max(s)", "max(x)", "min(x)", "sum(id)", "count(DISTINCT part)",
)  # fmt: skip
_NUMBERS = itertools.count()
_DELTA = [pytest.param("delta 1", marks=pytest.mark.slow)] if "delta" in FORMATS else []
LAYOUTS = ["iceberg 2", "iceberg 3", *_DELTA]
"""A format, and its version: in Iceberg's second, delete files tell no more than how many rows are deleted at most."""


def mostly(first: str):
    """Run a test with one layout, and in slow runs with the others."""
    later_layouts = [pytest.param(layout, marks=pytest.mark.slow) for layout in LAYOUTS[:2] if layout != first]
    return pytest.mark.parametrize("layout", [first, *later_layouts, *_DELTA], indirect=True)


RARE = (
    "id, CAST(if(id % 100 < 3, 5, NULL) AS INT) AS single, CAST(if(id % 100 = 50, 9, 1) AS INT) AS greatest,"
    " if(id % 100 < 3, 7D, double('NaN')) AS beside_nan"
)
RARE_COLUMNS = "id BIGINT, single INT, greatest INT, beside_nan DOUBLE"
RARE_FUNCTIONS = ("min(single)", "max(single)", "min(greatest)", "max(greatest)", "min(beside_nan)", "max(beside_nan)")
"""A bound that one row in a hundred has, or three: the other rows are NULL, less, or NaN."""


def create_rare(spark, layout: str, path) -> str:
    """Write three files: of the first all rows with a rare bound are deleted, of the second some, of the third none."""
    table = create(spark, layout, path, columns=RARE_COLUMNS, row=RARE, files=3)
    spark.sql(f"DELETE FROM {table} WHERE id < 3 OR id IN (50, 101)")
    return table


def create(spark, layout: str, path, columns: str = COLUMNS, row: str = ROW, files: int = 4) -> str:
    """Write analyzed files of a hundred rows, whose deleted rows stay where they are."""
    name, version = layout.split()
    kind = ICEBERG if name == "iceberg" else DELTA
    table = kind.name.format(f"deleted_rows_{next(_NUMBERS)}")
    kind.create(spark, table, path, columns)
    if name == "iceberg":
        properties = {"format-version": version, "write.delete.granularity": "file"}
        properties.update({f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")})
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})")
    for file in range(files):
        kind.append(spark, table, file * 100, file * 100 + 100, row=row)
    metastore.analyze(spark, table, progress=False)
    return table


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture(autouse=True)
def settings(spark):
    with conf(spark, spark__metastore__aggregates__enabled=True, spark__metastore__planning__timeout="60s"):
        yield


@pytest.fixture(scope="module")
def table(spark, layout, tmp_path_factory):
    """Rows of every file are deleted after ANALYZE: four of the first, and two of each other."""
    table = create(spark, layout, tmp_path_factory.mktemp("deleted") / "table")
    spark.sql(f"DELETE FROM {table} WHERE id % 50 = 7")
    spark.sql(f"DELETE FROM {table} WHERE id IN (7, 8, 9)")
    yield table
    drop(spark, layout, table)


@pytest.fixture
def own_table(spark, layout, tmp_path):
    table = create(spark, layout, tmp_path / "table")
    yield table
    drop(spark, layout, table)


def drop(spark, layout: str, table: str) -> None:
    (ICEBERG if layout.startswith("iceberg") else DELTA).drop(spark, table)


def test_a_limit_reads_what_holds_enough_live_rows(spark, table):
    for query, read in {"LIMIT 98": 1, "LIMIT 99": 2, "WHERE id < 200 LIMIT 99": 2, "LIMIT 390": 4}.items():
        df = spark.sql(f"SELECT id FROM {table} {query}")
        rows = df.collect()
        assert len({row.id for row in rows}) == len(rows) == int(query.split()[-1]), query
        assert not any(row.id % 50 == 7 or row.id in (8, 9) for row in rows), query
        assert files_read(df) == [read], (query, labels(df))


def test_an_order_reads_what_holds_the_first_live_rows(spark, table):
    for order, limit, read in [("id", 96, 1), ("id", 97, 2), ("id DESC", 98, 1), ("id DESC", 99, 2)]:
        compare(spark, f"SELECT id, s FROM {table} ORDER BY {order} LIMIT {limit}", read=[read])


@mostly("iceberg 2")
def test_nulls_and_values_may_each_be_the_deleted_rows(spark, own_table):
    """Ten rows of each file are null: where all of them are deleted, not one is certain, but ninety rows are."""
    spark.sql(f"DELETE FROM {own_table} WHERE part < 2 AND a IS NULL")
    for order, limit in [
        ("a NULLS FIRST, id", 100),
        ("a NULLS FIRST, id", 101),
        ("a DESC NULLS LAST, id", 180),
        ("a DESC NULLS LAST, id", 181),
    ]:
        compare(spark, f"SELECT id, a FROM {own_table} WHERE part < 3 ORDER BY {order} LIMIT {limit}")
    compare(spark, f"SELECT id, a FROM {own_table} WHERE part < 2 ORDER BY a NULLS FIRST, id LIMIT 5", read=[2])
    compare(spark, f"SELECT id, a FROM {own_table} WHERE part IN (0, 2) ORDER BY a NULLS FIRST, id LIMIT 5")


def test_aggregates_that_deletes_leave_certain(spark, table, layout):
    is_exact = layout != "iceberg 2"
    compare(spark, f"SELECT count(*), count(id) FROM {table}", answered=is_exact)
    compare(spark, f"SELECT count(*) FROM {table} WHERE id >= 100", answered=is_exact)
    compare(
        spark, f"SELECT min(part), max(part), min(g), max(g), count(nothing), max(nothing) FROM {table}", answered=True
    )
    uncertain = ["count(a)", "min(id)", "max(s)", "max(x)", "sum(g)", "avg(part)", "count(DISTINCT g)"]
    compare(spark, f"SELECT {', '.join(uncertain)} FROM {table}", answered=False)
    for function in uncertain:
        assert not is_answered(spark.sql(f"SELECT {function} FROM {table}")), function
    compare(spark, f"SELECT g, count(*) FROM {table} GROUP BY g", answered=False)


@mostly("iceberg 3")
def test_files_whose_rows_are_all_deleted_prove_nothing(spark, own_table):
    """Twenty rows have each value of `g`: of the fourth file all those with the greatest are deleted."""
    spark.sql(f"DELETE FROM {own_table} WHERE part = 3 AND g = 4")
    compare(spark, f"SELECT min(g), max(g) FROM {own_table} WHERE part = 3", answered=False)
    compare(spark, f"SELECT max(part) FROM {own_table}", answered=True)
    for remainder in (0, 1, 2, 3):
        spark.sql(f"DELETE FROM {own_table} WHERE part = 3 AND id % 4 = {remainder}")
    compare(spark, f"SELECT max(part), max(g), count(*) FROM {own_table}")
    compare(spark, f"SELECT * FROM {own_table} ORDER BY id DESC LIMIT 5")
    assert spark.sql(f"SELECT * FROM {own_table} LIMIT 300").count() == 300


@pytest.mark.slow
def test_too_many_delete_files_prove_nothing(spark, tmp_path):
    table = create(spark, "iceberg 2", tmp_path / "table")
    try:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.granularity' = 'partition')")
        for deleted in range(16):
            spark.sql(f"DELETE FROM {table} WHERE id = {deleted}")
        compare(spark, f"SELECT id FROM {table} ORDER BY id LIMIT 84", read=[1])
        spark.sql(f"DELETE FROM {table} WHERE id = 16")
        compare(spark, f"SELECT id FROM {table} ORDER BY id LIMIT 83", read=[2])
        compare(spark, f"SELECT max(part) FROM {table} WHERE part = 0", answered=False)
    finally:
        drop(spark, "iceberg 2", table)


@pytest.mark.slow
def test_equality_deletes_prove_nothing(spark, tmp_path):
    """One value that is deleted is that of half of a file's rows."""
    table = f"ice.db.deleted_rows_{next(_NUMBERS)}"
    spark.sql(f"CREATE TABLE {table} (id INT, p STRING) USING iceberg PARTITIONED BY (p)")
    try:
        spark.sql(f"INSERT INTO {table} SELECT CAST(id % 2 AS INT), 'p0' FROM range(0, 100, 1, 1)")
        spark.sql(f"INSERT INTO {table} SELECT CAST(id % 2 AS INT), 'p1' FROM range(0, 100, 1, 1)")
        metastore.analyze(spark, table, progress=False)
        delete_where_equal(spark, table, "p0", [0])
        assert spark.sql(f"SELECT * FROM {table} LIMIT 120").count() == 120
        compare(spark, f"SELECT * FROM {table} ORDER BY id, p LIMIT 60")
        compare(spark, f"SELECT count(*), min(id), max(id), count(id) FROM {table} WHERE p = 'p0'", answered=False)
    finally:
        drop(spark, "iceberg", table)


@pytest.mark.slow
def test_position_deletes_turned_into_vectors(spark, tmp_path):
    """Of a file that has both kinds the vector alone counts: it took over what the others deleted."""
    table = create(spark, "iceberg 2", tmp_path / "table")
    try:
        spark.sql(f"DELETE FROM {table} WHERE id IN (1, 2, 101, 102)")
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
        spark.sql(f"DELETE FROM {table} WHERE id IN (2, 3, 4)")
        compare(spark, f"SELECT count(*) FROM {table} WHERE part = 0", answered=True)
        compare(spark, f"SELECT count(*) FROM {table} WHERE part = 1", answered=False)
        compare(spark, f"SELECT id FROM {table} ORDER BY id LIMIT 96", read=[1])
        compare(spark, f"SELECT id FROM {table} ORDER BY id LIMIT 97", read=[2])
    finally:
        drop(spark, "iceberg", table)


# Positions in files, by number, that position delete files name, as no careful writer does.
ODD_POSITIONS = {
    "twice": [{0: [3, 3, 5]}, {0: [3]}],
    "beyond the file": [{0: [3, 100, 1_000_000]}, {1: [100, 101]}],
    "of several files": [{0: [*range(100), *range(100)], 1: [7, 7, 150], 2: [1_000_000]}],
}


@pytest.fixture(scope="module")
def written_table(spark, tmp_path_factory):
    """A table without deletes, and the paths of its data files."""
    table = create(spark, "iceberg 2", tmp_path_factory.mktemp("odd") / "table")
    paths = spark.sql(f"SELECT _file, min(id) FROM {table} GROUP BY 1 ORDER BY 2").collect()
    yield table, [row._file for row in paths]
    drop(spark, "iceberg", table)


@pytest.mark.parametrize("odd", ODD_POSITIONS)
def test_odd_position_delete_files(spark, written_table, tmp_path, odd):
    """The positions in a delete file are an upper bound of deleted rows; ANALYZE counts those that exist."""
    table, paths = written_table
    before = spark.sql(f"SELECT snapshot_id FROM {table}.refs").first().snapshot_id
    for number, deleted in enumerate(ODD_POSITIONS[odd]):
        positions = [
            (paths[file], position) for file, positions_of_file in deleted.items() for position in positions_of_file
        ]
        delete_positions(spark, table, tmp_path / f"{number}.parquet", positions)
    compare_odd(spark, table)
    metastore.analyze(spark, table, progress=False)
    live = len(plain(spark, f"SELECT id FROM {table}"))
    assert metastore.summary(spark, table).column("id")["count"] == live
    assert sum(row["rows"] - row["deleted_rows"] for row in metastore.files(spark, table)) == live
    spark.sql(f"CALL ice.system.set_current_snapshot('{table}', {before})")


def compare_odd(spark, table: str) -> None:
    live = len(plain(spark, f"SELECT id FROM {table}"))
    for limit in (99, live + 1):
        assert spark.sql(f"SELECT id FROM {table} LIMIT {limit}").count() == min(limit, live)
        compare(spark, f"SELECT id, s FROM {table} ORDER BY id LIMIT {limit}")
    compare(spark, f"SELECT count(*), count(a), min(id), max(id), count(nothing) FROM {table}")
    compare(spark, f"SELECT min(part), max(part), max(g) FROM {table} WHERE part < 2")


class History:
    """A table that is changed and queried at random: now, and as it was."""

    def __init__(self, spark, table: str, layout: str, chance: random.Random):
        self.spark, self.table, self.chance = spark, table, chance
        self.is_iceberg = layout.startswith("iceberg")
        self.is_partitioned = False
        self.next_id = 400

    def change(self) -> None:
        """Commit one change, or more."""
        table, low = self.table, self.chance.randrange(self.next_id)
        statement = self.chance.choice([
            f"DELETE FROM {table} WHERE id IN ({low}, {low + 1}, {low // 100 * 100})",
            f"DELETE FROM {table} WHERE id % {self.chance.choice([7, 20, 50])} = {self.chance.randrange(7)}",
            f"DELETE FROM {table} WHERE part = {low // 100} AND (a IS NULL OR id % 3 = 0)",
            f"DELETE FROM {table} WHERE part = {low // 100} AND g = {self.chance.choice([0, 4])}",
            f"DELETE FROM {table} WHERE part = {low // 100}",
            f"UPDATE {table} SET a = -1, part = part + 10 WHERE id BETWEEN {low} AND {low + 2}",
            f"UPDATE {table} SET g = NULL, x = NULL WHERE id % 50 = {low % 50}",
            self.merge(low),
            self.insert(),
            self.insert(),
            self.rollback(),
            self.alter(),
        ])  # fmt: skip
        if statement:
            self.spark.sql(statement)
        if self.chance.random() < 0.3:
            metastore.analyze(self.spark, table, progress=False)

    def insert(self) -> str:
        start = self.next_id
        self.next_id += 50
        return f"INSERT INTO {self.table} SELECT {ROW} FROM range({start}, {self.next_id}, 1, 1)"

    def merge(self, low: int) -> str:
        return (
            f"MERGE INTO {self.table} t USING (SELECT {ROW} FROM range({low}, {low + 8}, 1, 1)) s ON t.id = s.id"
            " WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET a = 77, s = 'merged'"
            " WHEN NOT MATCHED THEN INSERT *"
        )

    def rollback(self) -> str:
        version = self.chance.choice(self.versions())
        if self.is_iceberg:
            return f"CALL ice.system.set_current_snapshot('{self.table}', {version})"
        return f"RESTORE TABLE {self.table} TO VERSION AS OF {version}"

    def versions(self) -> list[int]:
        if self.is_iceberg:
            query = f"SELECT snapshot_id FROM {self.table}.snapshots ORDER BY committed_at"
            return [row.snapshot_id for row in self.spark.sql(query).collect()]
        return [row.version for row in self.spark.sql(f"DESCRIBE HISTORY {self.table}").collect() if row.version > 0]

    def alter(self) -> str:
        if not self.is_iceberg:
            return f"OPTIMIZE {self.table}"
        changes = [
            f"ALTER TABLE {self.table} SET TBLPROPERTIES ('write.delete.granularity' = 'partition')",
            f"ALTER TABLE {self.table} SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')",
            f"ALTER TABLE {self.table} SET TBLPROPERTIES ('format-version' = '3')",
            f"CALL ice.system.rewrite_position_delete_files('{self.table}')",
        ]
        if not self.is_partitioned:
            changes.append(f"ALTER TABLE {self.table} ADD PARTITION FIELD part")
        statement = self.chance.choice(changes)
        self.is_partitioned = self.is_partitioned or "ADD PARTITION" in statement
        return statement

    def ask(self) -> int:
        """Compare a query of each kind with that without us; how many of them were answered, or left files out."""
        table = self.table
        if SPARK != "3.5" and self.chance.random() < 0.2:
            table = f"{table} VERSION AS OF {self.chance.choice(self.versions())}"
        where = self.chance.choice(["", *WHERES])
        limit = self.chance.choice([1, 5, 60, 90, 98, 150, 390])
        return sum([self.aggregate(table, where), self.order(table, where, limit), self.limit(table, where, limit)])

    def aggregate(self, table: str, where: str) -> bool:
        functions = self.chance.sample(FUNCTIONS, self.chance.choice([1, 1, 2]))
        return is_answered(compare(self.spark, f"SELECT {', '.join(functions)} FROM {table} {where}"))

    def order(self, table: str, where: str, limit: int) -> bool:
        column = self.chance.choice(["id", "part", "a", "g", "x", "s"])
        direction = self.chance.choice(["ASC", "DESC"])
        nulls = self.chance.choice(["FIRST", "LAST"])
        query = f"SELECT {NAMES} FROM {table} {where} ORDER BY {column} {direction} NULLS {nulls}, id LIMIT {limit}"
        return any("top-K" in label for label in labels(compare(self.spark, query)))

    def limit(self, table: str, where: str, limit: int) -> bool:
        query = f"SELECT {NAMES} FROM {table} {where}"
        truth = plain(self.spark, query)
        df = self.spark.sql(f"{query} LIMIT {limit}")
        rows = df.collect()
        assert len({row.id for row in rows}) == len(rows) == min(limit, len(truth)), (query, limit, labels(df))
        assert set(rows) <= set(truth), (query, limit)
        return any("LIMIT" in label for label in labels(df))


@mostly("iceberg 2")
@pytest.mark.parametrize(
    ("seed", "changes", "queries"),
    [(1, 3, 2), *(pytest.param(seed, 8, 8, marks=pytest.mark.campaign) for seed in range(2, 12))],
)
def test_random_histories(spark, own_table, layout, seed, changes, queries):
    history = History(spark, own_table, layout, random.Random(f"{layout} {seed}"))
    used = 0
    for _ in range(changes):
        history.change()
        used += sum(history.ask() for _ in range(queries))
    assert used >= changes * queries // 3


@mostly("iceberg 3")
def test_a_bound_of_few_rows_may_be_deleted(spark, layout, tmp_path):
    table = create_rare(spark, layout, tmp_path / "rare")
    for where in ("", "WHERE id < 100", "WHERE id >= 100 AND id < 200", "WHERE id >= 200"):
        compare(spark, f"SELECT {', '.join(RARE_FUNCTIONS)} FROM {table} {where}")
        for function in RARE_FUNCTIONS:
            compare(spark, f"SELECT {function} FROM {table} {where}")
    drop(spark, layout, table)
