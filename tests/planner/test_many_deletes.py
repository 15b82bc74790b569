"""Planning costs as much as there are data files and delete files, not as there are pairs of them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from metastore.jvm_session import find_shim_package
from planner.many_deletes import DELETED, ROWS, SCHEMA, allocated_bytes, plan, write_files, write_statistics
from planner.plans import conf, labels

pytestmark = pytest.mark.spark

FILES = 1000
MOST_BYTES_PER_PAIR = 16
"""No object is made for a pair: the smallest has as many bytes."""


@pytest.fixture(
    params=[("position", 1), ("position", 4), ("equality", 1)],
    ids=lambda kind_and_count: f"{kind_and_count[0]}-{kind_and_count[1]}",
)
def many_deletes(spark, new_table, request):
    """A table of a million pairs, or of more than half as many, its kind of deletes, and in how many parts it came."""
    table = new_table(SCHEMA, "'format-version' = '2'")
    deletes, commits = request.param
    write_files(spark, table, FILES, deletes, commits)
    write_statistics(spark, table, FILES)
    return table, deletes, commits


def bytes_of(spark, action) -> int:
    action()  # what is loaded once
    before = allocated_bytes(spark)
    action()
    after = allocated_bytes(spark)
    # Thread by thread: a thread that ends in between takes all that it ever allocated out of a sum.
    return sum(number - before.get(thread, 0) for thread, number in after.items())


def test_nothing_is_made_for_each_pair_of_a_data_file_and_a_delete_file(spark, many_deletes):
    table, *_ = many_deletes
    query = f"SELECT * FROM {table} WHERE id = 5"
    ours = bytes_of(spark, lambda: plan(spark, query))
    with conf(spark, spark__metastore__enabled=False):
        without = bytes_of(spark, lambda: plan(spark, query))
    assert ours - without < FILES * FILES * MOST_BYTES_PER_PAIR
    facts = bytes_of(spark, lambda: spark.sql(f"SELECT * FROM metastore_facts('{table}')").collect())
    assert facts - without < FILES * FILES * MOST_BYTES_PER_PAIR


def test_files_are_skipped_and_deleted_rows_are_shared_out(spark, many_deletes):
    table, deletes, _ = many_deletes
    assert labels(spark.sql(f"SELECT * FROM {table} WHERE id = 5")) == [f"{FILES} -> 1 files"]
    optimized = spark.sql(f"SELECT * FROM {table}")._jdf.queryExecution().optimizedPlan()
    live = FILES * (ROWS - DELETED) if deletes == "position" else FILES * ROWS
    assert int(optimized.collectLeaves().head().stats().rowCount().get()) == live


def test_data_files_with_the_same_delete_files_have_the_same_digest(spark, many_deletes):
    table, deletes, commits = many_deletes
    _, *files = spark.sql(f"SELECT * FROM metastore_facts('{table}')").collect()
    assert len(files) == FILES
    assert {file.equality_deletes for file in files} == {deletes == "equality"}
    assert len({file.deletes for file in files}) == commits
    assert {file.deleted_rows for file in files} == {None}


def lists_of_deletes(seed: int) -> list[list[int]]:
    """Lists that grow at either end, that leave out some, of single files, and in no order."""
    chance = random.Random(seed)
    lists = [list(range(start, 300)) for start in range(299, 150, -1)]
    lists += [[*range(100), number] for number in range(1000, 1060)]
    lists += [list(range(0, 300, step)) for step in (1, 2, 3)]
    lists += [sorted(chance.sample(range(400), chance.randint(1, 300))) for _ in range(60)]
    lists += [chance.sample(range(400), chance.randint(1, 300)) for _ in range(60)]
    return lists


def digest_of(deletes: list[int]) -> str:
    hashes = [hashlib.sha256(f"{delete}\n\n".encode()).digest() for delete in deletes]
    words = zip(*(struct.unpack(">4Q", digest) for digest in hashes), strict=True)
    return f"{len(deletes)}-" + "".join(f"{sum(word) % 2**64:016x}" for word in words)


def test_a_digest_is_that_of_the_delete_files_whatever_lists_came_before(spark):
    lists = lists_of_deletes(1)
    digests = find_shim_package(spark).tables.DeletesProbe.digests(
        "\n".join(",".join(map(str, positions)) for positions in lists)
    )
    *answers, paths = digests.splitlines()
    for deletes, answer in zip(lists, answers, strict=True):
        has_equality = any(number % 2 for number in deletes)
        assert answer == f"{digest_of(deletes)} {str(has_equality).lower()}"
    assert int(paths) == len({number for deletes in lists for number in deletes})


PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from planner import many_deletes
builder = SparkSession.builder
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
files, deletes, commits = int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
table = "ice.db.many_deletes"
spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
spark.sql(f"CREATE TABLE {table} ({many_deletes.SCHEMA}) USING iceberg TBLPROPERTIES ('format-version' = '2')")
many_deletes.write_files(spark, table, files, deletes, commits)
many_deletes.write_statistics(spark, table, files)
query = f"SELECT * FROM {table} WHERE id = 5"
facts = spark.sql(f"SELECT * FROM metastore_facts('{table}')").collect()
print(json.dumps([many_deletes.plan(spark, query), len(facts)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 8])
def test_a_driver_of_a_gigabyte_plans_64_million_pairs(own_spark_conf, tmp_path, commits):
    files = 8000
    settings = {**own_spark_conf, "spark.sql.catalog.ice.warehouse": str(tmp_path / "ice")}
    command = [sys.executable, "-c", PROGRAM, json.dumps(settings), str(files), "position", str(commits)]
    tests = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": tests},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    planned, facts = json.loads(done.stdout.splitlines()[-1])
    assert f"{files} -> 1 files" in planned
    assert facts == files + 1
