"""Soundness of pruning on Hudi tables: random tables and predicates against Spark's own answer on the rows."""

from __future__ import annotations

import pytest

from oracle import hudi
from oracle.run import Campaign, Size

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("number", range(len(hudi.KINDS)))
def test_no_file_with_a_matching_row_is_skipped(spark, tmp_path, request, number):
    seed = request.config.getoption("--oracle-seed")
    campaign = Campaign(spark, tmp_path, seed, Size(files=12, predicates=60, queries=3))
    try:
        campaign.round(number)
    finally:
        for key in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled"):
            spark.conf.unset(key)
        print(campaign.text())
    wrong = [str(wrong) for report in campaign.reports.values() for wrong in report.wrong]
    assert not wrong, "\n".join(wrong[:20])
    for source in ("stored statistics", "whole queries"):
        report = campaign.reports[source]
        assert report.power >= 0.97, (source, report.missed.most_common(20))
