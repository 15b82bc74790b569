"""Soundness of pruning on Hudi tables: random tables and predicates against Spark's own answer on the rows."""

from __future__ import annotations

import pytest

from oracle import hudi
from oracle.run import Campaign, Size

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def campaign(spark, tmp_path_factory, request):
    seed = request.config.getoption("--oracle-seed")
    print(f"\n--oracle-seed={seed}")
    running = Campaign(spark, tmp_path_factory.mktemp("oracle"), seed, Size(files=8, predicates=60, queries=3))
    yield running
    print(running.text())


@pytest.mark.parametrize("number", range(len(hudi.KINDS)), ids=hudi.KINDS)
def test_no_file_with_a_matching_row_is_skipped(spark, campaign, number):
    try:
        campaign.round(number)
    finally:
        for key in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled"):
            spark.conf.unset(key)
    wrong = [str(wrong) for report in campaign.reports.values() for wrong in report.wrong]
    assert not wrong, "\n".join(wrong[:20])
    for source in ("stored statistics", "whole queries"):
        report = campaign.reports[source]
        assert not report.provable_verdicts or report.power >= 0.97, (source, report.missed.most_common(20))
