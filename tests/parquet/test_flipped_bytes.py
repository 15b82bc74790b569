"""Statistics of which some bytes are not those that were written: queries and located keys are as without them."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

import metastore
from metastore.jvm_session import find_shim_package
from parquet.conftest import append
from planner.plans import conf, rows

pytestmark = [pytest.mark.spark, pytest.mark.campaign]
QUERIES = [
    "SELECT * FROM {} WHERE id BETWEEN 120 AND 130",
    "SELECT * FROM {} WHERE v = 5 AND s >= 's00310'",
    "SELECT * FROM {} WHERE s IN ('s00007', 's00399', 'nothing')",
    "SELECT count(*) AS n FROM {} WHERE st.a = 250 OR st.`b.c` > 99",
]


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 4, 64])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + (data[-chance.randrange(1, 200) :] if chance.random() < 0.5 else b"")


def shifted(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(8) + data[at + 8 : len(data)]


CHANGES = [flipped, cut, shifted]


@pytest.fixture(params=["footer", "full"])
def statistics(request, spark, folder):
    """Objects of statistics of some depth, two of each kind, and manifests."""
    table, deep = f"parquet.`{folder}`", request.param == "full"
    metastore.analyze(spark, table, progress=False, depth=request.param, distribution=["v", "s"] if deep else ())
    append(spark, folder, 400, 500)
    metastore.analyze(spark, table, progress=False, depth=request.param)
    kinds = defaultdict(list)
    for path in sorted((folder / "_metastore").rglob("*-*.parquet")):
        kinds[path.name.rsplit("-", 5)[0]].append(path)
    return [
        *sorted((folder / "_metastore").rglob("*.json")),
        *(candidate for paths in kinds.values() for candidate in paths[:2]),
    ]


def answers(spark, folder, keys):
    query_rows = [rows(spark.sql(query.format(f"parquet.`{folder}`"))) for query in QUERIES]
    return [*query_rows, located(spark, folder, keys)]


def located(spark, folder, keys):
    try:
        return rows(metastore.locate(spark, f"parquet.`{folder}`", ["s"], keys))
    except metastore.MetastoreError:
        return None


def test_what_is_found_is_the_same(spark, folder, statistics):
    chance = random.Random(7)
    keys = spark.createDataFrame([("s00007",), ("s00250",), ("nothing",)], "s string")
    with conf(spark, spark__metastore__pruning__enabled="false"):
        *truth, located = answers(spark, folder, keys)
    assert len(located) == 2
    for path in statistics:
        sound = path.read_bytes()
        same_kind = [candidate for candidate in statistics if candidate.suffix == path.suffix and candidate != path]
        for change in [*CHANGES, None]:
            path.write_bytes(change(sound, chance) if change else chance.choice(same_kind).read_bytes())
            find_shim_package(spark).statistics.cache.StatisticsCache.clear()
            *answered, where = answers(spark, folder, keys)
            assert answered == truth, (path.name, change)
            assert where in (located, None), (path.name, change)
        path.write_bytes(sound)
