"""Files really read, counted without the Metastore: in Spark's partitions, by the readers, by taking files away."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

import metastore
from oracle import reading, tables
from oracle.judge import Conditions, draw_predicates
from oracle.truth import matching_files
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

KINDS = ("evolved", "vectors")
WANTED = 6


@pytest.fixture(
    scope="module", params=[KINDS[0], *(pytest.param(one, marks=pytest.mark.campaign) for one in KINDS[1:])]
)
def pruned(request, spark, tmp_path_factory):
    """An analyzed table and predicates by which some but not all of its files are skipped."""
    seed, kind = request.config.getoption("--oracle-seed"), request.param
    print(f"\n--oracle-seed={seed}")
    rng, name = Random(f"{seed}/files/{kind}"), f"ice.db.files_{kind}"
    subject = tables.iceberg(spark, name, kind, 16, tmp_path_factory.mktemp(kind), rng, covered=True)
    metastore.analyze(spark, name, progress=False)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    drawn = [p.sql() for p in draw_predicates(subject, 60, Conditions("UTC", ansi=False), rng)]
    known = [p for p, truth in zip(drawn, matching_files(spark, subject, drawn), strict=True) if truth is not None]
    yield name, _worth_asking(spark, name, known)
    spark.conf.unset("spark.sql.ansi.enabled")


def _worth_asking(spark, name: str, predicates: Sequence[str]) -> list[str]:
    found = [p for p in predicates if 0 < len(kept(spark, name, p)) < len(told(spark, name, p))]
    assert len(found) >= WANTED
    return found[:WANTED]


def told(spark, name: str, predicate: str) -> dict[str, bool]:
    query = f"SELECT * FROM {name} WHERE {predicate}"
    rows = spark.sql("SELECT path, kept FROM metastore.explain(:query)", {"query": query}).collect()
    return {row.path: row.kept for row in rows}


def kept(spark, name: str, predicate: str) -> frozenset[str]:
    return frozenset(path for path, read in told(spark, name, predicate).items() if read)


def test_tasks_open_the_files_that_explain_names(spark, pruned):
    name, predicates = pruned
    for predicate in predicates:
        query = spark.sql(f"SELECT to_json(struct(*)) FROM {name} WHERE {predicate}")
        query.collect()
        expected = kept(spark, name, predicate)
        assert reading.files(query) == [expected], predicate
        assert plans.files_read(query) == [len(expected)], predicate
        assert plans.labels(query) == [f"{len(told(spark, name, predicate))} -> {len(expected)} files"], predicate


@pytest.mark.slow
def test_skipped_files_are_not_opened_and_kept_files_are(spark, pruned):
    name, predicates = pruned
    for predicate in predicates:
        query = f"SELECT to_json(struct(*)) FROM {name} WHERE {predicate}"
        answer = plans.plain(spark, query)
        of_files = told(spark, name, predicate)
        with reading.hidden(path for path, read in of_files.items() if not read):
            assert plans.rows(spark.sql(query)) == answer, predicate
            with pytest.raises(Py4JJavaError, match=r"FAILED_READ_FILE|FileNotFound|does not exist"):
                plans.plain(spark, query)
        for path in sorted(kept(spark, name, predicate))[:2]:
            with reading.hidden([path]), pytest.raises(Py4JJavaError):
                spark.sql(query).collect()
