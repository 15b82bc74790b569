"""Statistics with a flipped byte and their length unchanged: one command repairs what readers and `verify` find."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import metastore
from metastore.errors import DamagedObject
from metastore.store import Store, block_merge
from metastore.store.verification import find_damage
from store.small_blocks import bounds

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def location(spark, table, warehouse):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg")
    for start in (0, 10):
        insert(spark, table, start)
        metastore.analyze(spark, table, progress=False, ranks=True, distribution=["name"])
    return warehouse / "db" / table.rpartition(".")[2]


def insert(spark, table, start):
    spark.sql(f"INSERT INTO {table} SELECT id, CAST(id % 7 AS STRING) FROM range({start}, {start + 10}, 1, 1)")


def stored(location):
    return Store.open(str(location / "_metastore"))


def flip(location, name):
    """Flips a byte of an object."""
    path = location / "_metastore" / "objects" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def object_names(location, kind):
    return [row["object"] for row in verified(location) if row["kind"] == kind]


def damage(location, kind):
    """Flips a byte of the newest object of a kind that is named; returns its name."""
    name = object_names(location, kind)[-1]
    flip(location, name)
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
    expected = answers(spark, table)
    kinds = {row["kind"] for row in verified(location)}
    assert {"files", "summary", "sketches", "frequencies", "histograms", "table-summary", "table-ranks"} <= kinds
    for kind in sorted(kinds):
        assert damage(location, kind) in wrong(location)
        report = repaired(spark, table, depth="files")
        assert (kind, report.committed, wrong(location)) == (kind, True, [])
        assert report.files_read == (0 if kind.startswith("table-") else 1)
    assert answers(spark, table) == expected


@pytest.mark.slow
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


@pytest.mark.slow
def test_repair_keeps_the_depth_and_columns_that_there_were(spark, table, location):
    spark.sql(f"ALTER TABLE {table} ADD COLUMN more INT")
    spark.sql(f"INSERT INTO {table} VALUES (99, 'x', 1)")
    metastore.analyze(spark, table, ["id"], progress=False)
    insert(spark, f"{table} (id, name)", 30)
    metastore.analyze(spark, table, depth="footer", progress=False)
    columns_before = metastore.columns(spark, table).to_dict()["rows"]
    for kind in ("summary", "frequencies"):
        damage(location, kind)
    repaired(spark, table, depth="files")
    assert wrong(location) == []
    assert metastore.columns(spark, table).to_dict()["rows"] == columns_before


@pytest.mark.parametrize(
    "part",
    [
        "table_files",
        pytest.param("summary", marks=pytest.mark.campaign),
        pytest.param("histograms", marks=pytest.mark.slow),
    ],
)
def test_an_earlier_snapshot_does_without_what_is_damaged(spark, table, location, part):
    store = stored(location)
    earlier, newest = store.read().snapshots
    flip(location, getattr(earlier, part).name)
    assert find_damage(store, store.read()).objects == {getattr(earlier, part).name}
    report = repaired(spark, table, depth="files")
    assert [refusal.subject for refusal in report.refused] == [f"snapshot {earlier.id}"]
    older, [*_, last] = store.read().snapshots[:-1], store.read().snapshots
    assert last.id == newest.id
    assert older == (() if part == "table_files" else (replace(earlier, **{part: None}),))
    assert wrong(location) == []


@pytest.mark.slow
def test_lists_of_an_earlier_snapshot_stay_together(spark, table, location):
    earlier = stored(location).read().snapshots[0]
    flip(location, earlier.frequencies[-1].object.name)
    repaired(spark, table, depth="files")
    earliest = stored(location).read().snapshots[0]
    assert earliest == replace(earlier, frequencies=(), distribution=(), placed=None)
    assert wrong(location) == []


@pytest.fixture
def rewritten(spark, table, location):
    """The table after all its data files were replaced: earlier snapshots list those that were analyzed."""
    spark.sql(f"INSERT OVERWRITE {table} SELECT 77, 'new'")
    metastore.analyze(spark, table, progress=False)
    metastore.compact(str(location))
    return location


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("sketches", "2 data files, such as .*: the statistics of id, name were damaged"),
        pytest.param("frequencies", "the statistics of id, name were damaged", marks=pytest.mark.campaign),
        pytest.param("summary", "the statistics of id, name were damaged", marks=pytest.mark.campaign),
        pytest.param("files", "a list of data files was damaged", marks=pytest.mark.slow),
    ],
)
def test_statistics_of_files_that_left_the_table_are_lost_and_named(spark, table, rewritten, kind, reason):
    version = stored(rewritten).read().snapshots[1].id
    query = f"SELECT count(*) FROM {table} VERSION AS OF {version} WHERE id = 5"
    lower_bounds = bounds(stored(rewritten), stored(rewritten).read())
    assert len(lower_bounds) == 6
    for name in object_names(rewritten, kind):
        flip(rewritten, name)
    report = repaired(spark, table, depth="files")
    [refusal] = report.refused
    assert refusal.subject == "earlier snapshots"
    assert re.search(reason, refusal.reason)
    assert wrong(rewritten) == []
    remaining = bounds(stored(rewritten), stored(rewritten).read())
    [live] = [path for (path, _), values in lower_bounds.items() if values == [77]]
    assert remaining == {(path, key): values for (path, key), values in lower_bounds.items() if path == live}
    assert spark.sql(query).first()[0] == 1
    assert not repaired(spark, table).refused
    assert metastore.analyze(spark, table, progress=False).committed is False


@pytest.mark.slow
def test_columns_whose_type_changed_are_computed_again(spark, table, location):
    spark.sql(f"ALTER TABLE {table} ADD COLUMN more INT")
    spark.sql(f"INSERT INTO {table} VALUES (99, 'x', 1)")
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN more TYPE BIGINT")
    columns_before = metastore.columns(spark, table).to_dict()["rows"]
    for name in object_names(location, "frequencies"):
        flip(location, name)
    refused = repaired(spark, table, depth="files").refused
    assert {refusal.subject for refusal in refused} == {"earlier snapshots"}
    lost = [re.search("(.*), such as .*: the statistics of more were damaged", refusal.reason) for refusal in refused]
    assert sorted(match[1] for match in lost) == ["1 data file", "2 data files"]
    assert metastore.columns(spark, table).to_dict()["rows"] == columns_before
    assert wrong(location) == []


@pytest.mark.slow
def test_zones_that_are_damaged_are_made_again(spark, table, location, monkeypatch):
    monkeypatch.setattr("metastore.format.object_layout.ZONED_FILES", 1)
    monkeypatch.setattr(block_merge.compact_blocks, "__kwdefaults__", {"zoned": 1})
    metastore.compact(str(location))
    [name] = object_names(location, "zones")
    flip(location, name)
    assert wrong(location) == [name]
    report = repaired(spark, table, depth="files")
    assert (report.committed, report.files_read, report.refused, wrong(location)) == (True, 0, (), [])


def test_a_block_of_another_writer_stays(spark, table, location, monkeypatch):
    """Another analyzer commits while the repair computes: what it wrote is not what was damaged."""
    store = stored(location).writable()
    newest = store.read().snapshots[-1]
    flip(location, newest.summary.name)
    earlier = store.read().snapshots[0]
    flip(location, earlier.summary.name)
    made = replace(earlier, summary=None, analyzed_at="2026-01-31T12:00:00Z")
    commit = Store.commit

    def overtaken(self, identity, change, **how):
        monkeypatch.setattr(Store, "commit", commit)
        store.commit(identity, lambda old: replace(old, snapshots=(made, *old.snapshots[1:])))
        return commit(self, identity, change, **how)

    monkeypatch.setattr(Store, "commit", overtaken)
    repaired(spark, table, depth="files")
    assert stored(location).read().snapshots[0] == made
    assert wrong(location) == []
