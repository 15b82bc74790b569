"""Statistics with a flipped byte and their length unchanged: one command repairs what readers and `verify` find."""

from __future__ import annotations

import pytest

import metastore
from metastore._store import Store
from metastore._store.verify import damage_of
from metastore.errors import DamagedObject

pytestmark = pytest.mark.spark


@pytest.fixture
def location(spark, table, warehouse):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg")
    for start in (0, 10):
        insert(spark, table, start)
        metastore.analyze(spark, table, progress=False, ranks=True, distribution=["name"])
    return warehouse / "db" / table.rpartition(".")[2]


def insert(spark, table, start):
    spark.sql(f"INSERT INTO {table} SELECT id, CAST(id % 7 AS STRING) FROM range({start}, {start + 10}, 1, 1)")


def damage(location, kind):
    """Flips a byte of the newest object of a kind that is named; returns its name."""
    name = [row["object"] for row in verified(location) if row["kind"] == kind][-1]
    stored = location / "_metastore" / "objects" / name
    data = bytearray(stored.read_bytes())
    data[len(data) // 3] ^= 1
    stored.write_bytes(data)
    return name


def verified(location):
    return metastore.verify(str(location)).to_dict()["rows"]


def wrong(location):
    return [row["object"] for row in verified(location) if row["state"] != "ok"]


def repaired(spark, table, **how):
    return metastore.analyze(spark, table, progress=False, repair=True, **how)


def answers(spark, table):
    summary = metastore.summary(spark, table).to_dict()["rows"]
    return (
        [{name: value for name, value in row.items() if name not in ("analyzed_at", "size_bytes")} for row in summary],
        metastore.frequencies(spark, table, "name").to_dict()["rows"],
        metastore.histogram(spark, table, "id").to_dict()["rows"],
        metastore.quantiles(spark, table, "id", [0.5]).to_dict()["rows"],
        [row.asDict() for row in spark.sql(f"SELECT * FROM metastore.locate('{table}', 'name', '3')").collect()],
    )


@pytest.mark.slow
def test_every_kind_is_repaired_by_one_command(spark, table, location):
    whole = answers(spark, table)
    kinds = {row["kind"] for row in verified(location)}
    assert {"files", "summary", "sketches", "frequencies", "histograms", "table-summary", "table-ranks"} <= kinds
    for kind in sorted(kinds):
        assert damage(location, kind) in wrong(location)
        report = repaired(spark, table, depth="files")
        assert (kind, report.committed, wrong(location)) == (kind, True, [])
        assert report.files_read == (0 if kind.startswith("table-") else 1)
    assert answers(spark, table) == whole


def test_what_a_reader_says_is_true(spark, table, location):
    damage(location, "table-summary")
    with pytest.raises(DamagedObject, match=r"repair=True"):
        metastore.open(str(location)).summary()
    with pytest.raises(DamagedObject, match=rf"statistics of {table} .* metastore analyze {table} --repair"):
        metastore.summary(spark, table)
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    assert repaired(spark, table).files_read == 0
    assert metastore.summary(spark, table).column("id")["max"] == 19


def test_nothing_is_committed_where_nothing_is_damaged(spark, table, location):
    assert (repaired(spark, table).committed, wrong(location)) == (False, [])


def test_repair_keeps_the_depth_and_columns_that_there_were(spark, table, location):
    spark.sql(f"ALTER TABLE {table} ADD COLUMN more INT")
    spark.sql(f"INSERT INTO {table} VALUES (99, 'x', 1)")
    metastore.analyze(spark, table, ["id"], progress=False)
    insert(spark, f"{table} (id, name)", 30)
    metastore.analyze(spark, table, depth="footer", progress=False)
    known = metastore.columns(spark, table).to_dict()["rows"]
    for kind in ("summary", "frequencies"):
        damage(location, kind)
    repaired(spark, table, depth="files")
    assert wrong(location) == []
    assert metastore.columns(spark, table).to_dict()["rows"] == known


def test_damaged_statistics_of_an_earlier_snapshot_are_left_out(spark, table, location):
    store = Store.open(str(location / "_metastore"))
    earlier, newest = store.read().snapshots
    stored = location / "_metastore" / "objects" / earlier.summary.name
    stored.write_bytes(b"\0" + stored.read_bytes()[1:])
    assert damage_of(store, store.read()).snapshots == {earlier.id}
    report = repaired(spark, table, depth="files")
    assert [refusal.subject for refusal in report.refused] == [f"snapshot {earlier.id}"]
    assert [entry.id for entry in store.read().snapshots] == [newest.id]
    assert wrong(location) == []
