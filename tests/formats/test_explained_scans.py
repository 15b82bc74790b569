"""`explain` tells of every scan of a query, and of every live data file of each."""

from __future__ import annotations

from collections import defaultdict

import pytest

from planner.plans import conf

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SAME = "SELECT id, v FROM {t} WHERE id < 50"
SCANS = {
    "SELECT a.v, b.s FROM {t} a JOIN {t} b ON a.id = b.id": 2,
    "SELECT a.v, b.s FROM {t} a JOIN {t} b ON a.id = b.v WHERE a.id < 50 AND b.id > 350": 2,
    f"SELECT a.v FROM ({SAME}) a JOIN ({SAME}) b ON a.id = b.id": 2,
    f"{SAME} UNION ALL {SAME}": 2,
    "WITH c AS (SELECT v, count(s) AS n FROM {t} WHERE x < 9 GROUP BY v) SELECT * FROM c a JOIN c b ON a.v = b.v": 2,
    f"SELECT v FROM {{t}} WHERE id IN (SELECT id FROM ({SAME}))": 2,
    "SELECT v FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id AND b.id < 50)": 2,
    "SELECT s FROM {t} WHERE v = (SELECT max(v) FROM {t} WHERE x < 9 AND s > 's')": 2,
    "SELECT s FROM {t} WHERE v = (SELECT max(v) FROM {t} WHERE x < 9 AND s > 's') AND id < 50"
    " UNION ALL SELECT s FROM {t} WHERE v = (SELECT max(v) FROM {t} WHERE x < 9 AND s > 's') AND id > 350": 4,
}


def explain(spark, query):
    """The rows with a data file of each scan, by its place."""
    scans = defaultdict(list)
    for row in spark.sql("SELECT * FROM metastore.explain(:query)", args={"query": query}).collect():
        scans[row.scan].append(row)
    return list(scans.values())


@pytest.fixture
def live(spark, filled):
    """The paths of the data files."""
    filled.analyze()
    return sorted(row.path for row in spark.sql(f"SELECT path FROM metastore.files('{filled.name}')").collect())


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_every_scan_of_a_table_lists_all_of_its_data_files(spark, filled, live, adaptive):
    broadcasts = {"spark__sql__autoBroadcastJoinThreshold": "-1"}
    for settings in ({}, broadcasts):
        with conf(spark, spark__sql__adaptive__enabled=adaptive, **settings):
            for query, scans in SCANS.items():
                explained = explain(spark, query.format(t=filled.name))
                assert [sorted(row.path for row in rows) for rows in explained] == [live] * scans, query


@pytest.mark.parametrize("where", ["day = DATE '2024-01-02'", "day > DATE '2024-01-02' AND id < 250", "day IS NULL"])
def test_files_of_other_partitions_are_listed_too(spark, parted, where):
    parted.analyze()
    listed = spark.sql(f"SELECT path FROM metastore.files('{parted.name}')").collect()
    live = sorted(row.path for row in listed)
    for query in (
        f"SELECT s FROM {parted.name} WHERE {where}",
        f"SELECT max(s), count(*) FROM {parted.name} WHERE {where}",
    ):
        (rows,) = explain(spark, query)
        assert sorted(row.path for row in rows) == live, query
        kept_files = {
            row[0].rpartition("/")[2]
            for row in spark.sql(f"SELECT DISTINCT input_file_name() FROM {parted.name} WHERE {where}").collect()
        }
        read = {row.path.rpartition("/")[2] for row in rows if row.kept or row.reason == "ANSWERED_BY_STATISTICS"}
        assert kept_files <= read, query


def test_a_join_of_two_partitions_lists_both_sides(spark, parted):
    parted.analyze()
    live = sorted(row.path for row in spark.sql(f"SELECT path FROM metastore.files('{parted.name}')").collect())
    days = "a.day = DATE '2024-01-02' AND b.day = DATE '2024-01-03'"
    scans = explain(spark, f"SELECT a.s FROM {parted.name} a JOIN {parted.name} b ON a.v = b.v WHERE {days}")
    assert [sorted(row.path for row in rows) for rows in scans] == [live, live]
