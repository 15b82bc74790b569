"""Reasons that only rare tables give, and the page that explains all of them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metastore
from metastore.contract import read_contract
from parquet.conftest import settle
from planner import written
from planner.plans import check, conf, labels
from sql import policies

ROOT = Path(__file__).parents[2]
SHIM = "jvm-shim/src/main/scala/org/metastore/spark"
spark_test = pytest.mark.spark


def reasons(spark, query: str) -> set[str]:
    return {row["reason"] for row in metastore.explain(spark, query)}


@spark_test
def test_a_file_without_rows(spark, tmp_path):
    (tmp_path / "t").mkdir()
    for name, values in {"low": range(50), "high": range(50, 99), "none": []}.items():
        pq.write_table(pa.table({"id": pa.array(values, pa.int64())}), tmp_path / "t" / f"{name}.parquet")
    settle(tmp_path)
    # Where nulls are counted, no value is all nulls, and the conjunct alone excludes the file.
    table = written.describe_parquet_folder(tmp_path / "t").change(
        "id", lambda _, row: row if row["rows"] else {"rows": 0}
    )
    table.write("1")
    query = f"SELECT * FROM parquet.`{tmp_path / 't'}` WHERE id = 5"
    assert reasons(spark, query) == {"KEPT_MAY_MATCH", "SKIPPED", "SKIPPED_EMPTY"}
    check(spark, query, [1])


@spark_test
def test_statistics_of_another_table(spark, four_files):
    table = written.describe_iceberg_table(spark, four_files)
    replace(table, identity=replace(table.identity, uuid="00000000-0000-4000-8000-000000000000")).write("1")
    query = f"SELECT * FROM {four_files} WHERE id = 5"
    assert reasons(spark, query) == {"OTHER_TABLE"}
    assert "dropped and created again" in labels(check(spark, query, [4]))[0]


@spark_test
def test_statistics_of_a_later_version(spark, analyzed):
    (log,) = (written.describe_iceberg_table(spark, analyzed).folder / "log").iterdir()
    body = json.loads(log.read_bytes().splitlines()[0])
    line = json.dumps({**body, "requires": ["of-tomorrow"]}).encode() + b"\n"
    log.write_bytes(line + f"sha256:{hashlib.sha256(line).hexdigest()}\n".encode())
    query = f"SELECT * FROM {analyzed} WHERE id = 5"
    assert reasons(spark, query) == {"FORMAT_TOO_NEW"}
    assert "of-tomorrow" in labels(check(spark, query, [4]))[0]


@spark_test
def test_what_fails_is_told_and_the_query_goes_on(spark, analyzed):
    query = f"SELECT * FROM {analyzed} WHERE id = 5"
    with conf(spark, spark__metastore__store="no:place"):
        assert reasons(spark, query) == {"FAILED"}
        assert labels(check(spark, query, [4])) == ["failed, the log says why"]


@spark_test
def test_a_row_policy_is_told_without_telling_of_files(spark, analyzed):
    session = policies.session_with_rule(spark)
    query = f"SELECT * FROM {analyzed} WHERE id = 5"
    with policies.under(session, "optimizer mark"):
        assert "row filter or a column mask" in labels(session.sql(query))[0]
        (row,) = metastore.explain(session, query)
        assert (row["reason"], row["path"], row["rows"]) == ("ROW_POLICY", None, None)
        assert len(session.sql(query).collect()) == 1


def test_every_reason_is_documented():
    page = (ROOT / "docs" / "explain.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) \|", page, re.MULTILINE)
    assert rows == [(reason["name"], reason["sentence"]) for reason in read_contract("reasons")]


def test_every_reason_is_given_somewhere():
    text = (ROOT / SHIM / "reason/Reason.scala").read_text("utf-8")
    assert re.findall(r'find\("(\w+)"\)', text) == [reason["name"] for reason in read_contract("reasons")]
