"""Joins of whose keys Spark's estimator knows nothing are not reordered; others are."""

from __future__ import annotations

import pytest

import metastore
from planner.plans import check, conf
from planner.test_estimates import optimized

pytestmark = pytest.mark.spark

FACTS = "id % 1000 AS day, id % 12 AS store, timestamp_ntz'2024-01-01' + make_dt_interval(id % 1000) AS at"


@pytest.fixture(scope="module")
def star(spark):
    """Facts of a thousand days in twelve stores, in two tables and in one."""
    made = {
        "sales": spark.range(20_000).selectExpr("id", *FACTS.split(", ")),
        "returns": spark.range(2_000).selectExpr("id", *FACTS.split(", ")),
        "days": spark.range(1_000).selectExpr(
            "id AS day", "cast(id AS int) AS short", "named_struct('day', id) AS of",
            "timestamp_ntz'2024-01-01' + make_dt_interval(cast(id AS int)) AS at", "id div 100 AS century",
        ),
        "stores": spark.range(12).selectExpr("id AS store", "concat('store ', id) AS name"),
    }  # fmt: skip
    for name, rows in made.items():
        rows.writeTo(f"ice.db.order_{name}").using("iceberg").createOrReplace()
        metastore.analyze(spark, f"ice.db.order_{name}", progress=False)
    yield {name: f"ice.db.order_{name}" for name in made}
    for name in made:
        spark.sql(f"DROP TABLE ice.db.order_{name} PURGE")


KEPT = {
    "a union's key": (
        "(SELECT day, store FROM {sales} UNION ALL SELECT day, store FROM {returns}) f "
        "JOIN {days} d ON f.day = d.day JOIN {stores} s ON f.store = s.store"
    ),
    "under another name": (
        "(SELECT day AS dd, store FROM (SELECT day, store FROM {sales} UNION ALL SELECT day, store FROM {returns})) f "
        "JOIN {days} d ON f.dd = d.day JOIN {stores} s ON f.store = s.store"
    ),
    "a widened key": "{sales} f JOIN {days} d ON f.day = d.short JOIN {stores} s ON f.store = s.store",
    "a field of a struct": "{sales} f JOIN {days} d ON f.day = d.of.day JOIN {stores} s ON f.store = s.store",
    "a type without numbers": "{sales} f JOIN {days} d ON f.at = d.at JOIN {stores} s ON f.store = s.store",
    "null-safe equality": "{sales} f JOIN {days} d ON f.day <=> d.day JOIN {stores} s ON f.store = s.store",
}


@pytest.mark.parametrize("name", KEPT)
def test_joins_with_unknown_keys_stay_where_they_are_written(spark, star, name):
    query = f"SELECT count(*), sum(f.store) FROM {KEPT[name]} WHERE d.century = 3".format(**star)
    assert joined(spark, query)[-2:] == ["days", "stores"]
    check(spark, query)


def test_joins_with_known_keys_are_reordered(spark, star):
    query = (
        "SELECT count(*) FROM {sales} f JOIN {stores} s ON f.store = s.store JOIN {days} d ON f.day = d.day "
        "WHERE d.century = 3 AND d.day < 302"
    ).format(**star)
    assert joined(spark, query) != ["sales", "stores", "days"]
    with conf(spark, spark__sql__cbo__joinReorder__enabled="false"):
        assert joined(spark, query) == ["sales", "stores", "days"]
    check(spark, query)


def test_joins_beside_one_that_stays_are_reordered(spark, star):
    union = "(SELECT day, store FROM {sales} UNION ALL SELECT day, store FROM {returns}) f"
    joins = "{sales} g JOIN {stores} s ON g.store = s.store JOIN {days} e ON g.day = e.day"
    inner = f"(SELECT g.id FROM {joins} WHERE e.century = 3 AND e.day < 302) i"
    query = f"SELECT count(*) FROM {union} JOIN {{days}} d ON f.day = d.day JOIN {inner} ON i.id = f.day".format(**star)
    leaves = joined(spark, query)
    assert leaves[:3] == ["sales", "returns", "days"]
    assert leaves[3:] != ["sales", "stores", "days"]


def joined(spark, query: str) -> list[str]:
    """The tables in the order in which they are joined."""
    leaves = optimized(spark.sql(query)).collectLeaves()
    return [leaves.apply(i).toString().split("ice.db.order_")[1].split()[0] for i in range(leaves.size())]
