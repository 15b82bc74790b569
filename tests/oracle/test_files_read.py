"""Files really read, counted without the Metastore: in Spark's partitions, by the readers, by taking files away."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from oracle import reading, whole_queries
from oracle.spark_answers import matching_files
from oracle.verdict_checks import Conditions, draw_predicates
from oracle.verdicts import Queries
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracle.tables import Subject

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

KINDS = whole_queries.KINDS[whole_queries.FORMAT]["files"]
WANTED = 6


@pytest.fixture(
    scope="module", params=[KINDS[0], *(pytest.param(kind, marks=pytest.mark.campaign) for kind in KINDS[1:])]
)
def pruned(request, spark, tmp_path_factory):
    """An analyzed table and predicates by which some but not all of its files are skipped."""
    seed, kind = request.config.getoption("--oracle-seed"), request.param
    print(f"\n--oracle-seed={seed}")
    rng = Random(f"{seed}/files/{kind}")
    subject = whole_queries.create(spark, kind, 16, tmp_path_factory.mktemp("files"), rng)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    drawn = [p.sql() for p in draw_predicates(subject, 60, Conditions("UTC", ansi=False), rng)]
    predicates = [p for p, truth in zip(drawn, matching_files(spark, subject, drawn), strict=True) if truth is not None]
    with plans.conf(spark, **whole_queries.CONF):
        yield subject, _worth_asking(spark, subject, predicates)
    spark.conf.unset("spark.sql.ansi.enabled")


def _worth_asking(spark, subject: Subject, predicates: Sequence[str]) -> list[str]:
    useful = [
        p for p in predicates if 0 < len(kept_files(spark, subject, p)) < len(files_with_verdict(spark, subject, p))
    ]
    assert len(useful) >= WANTED
    return useful[:WANTED]


def files_with_verdict(spark, subject: Subject, predicate: str) -> dict[str, bool]:
    return Queries(spark, subject).file_verdicts(predicate)


def kept_files(spark, subject: Subject, predicate: str) -> frozenset[str]:
    return frozenset(path for path, read in files_with_verdict(spark, subject, predicate).items() if read)


def test_tasks_open_the_files_that_explain_names(spark, pruned):
    subject, predicates = pruned
    for predicate in predicates:
        query = spark.sql(f"SELECT to_json(struct(*)) FROM {subject.relation} WHERE {predicate}")
        query.collect()
        expected = kept_files(spark, subject, predicate)
        assert reading.files(query) == [expected], predicate
        assert plans.files_read(query) == [len(expected)], predicate
        all_files = len(files_with_verdict(spark, subject, predicate))
        assert plans.labels(query) == [f"{all_files} -> {len(expected)} files"], predicate


@pytest.mark.slow
def test_skipped_files_are_not_opened_and_kept_files_are(spark, pruned):
    if whole_queries.FORMAT == "parquet":
        pytest.skip("a directory has no list of its files: one that is taken away is not missed")
    subject, predicates = pruned
    for predicate in predicates:
        query = f"SELECT to_json(struct(*)) FROM {subject.relation} WHERE {predicate}"
        answer = plans.plain(spark, query)
        of_files = files_with_verdict(spark, subject, predicate)
        with reading.hidden(path for path, read in of_files.items() if not read):
            assert plans.rows(spark.sql(query)) == answer, predicate
            with pytest.raises(Py4JJavaError, match=r"FAILED_READ_FILE|FileNotFound|does not exist"):
                plans.plain(spark, query)
        for path in sorted(kept_files(spark, subject, predicate))[:2]:
            with reading.hidden([path]), pytest.raises(Py4JJavaError):
                spark.sql(query).collect()
