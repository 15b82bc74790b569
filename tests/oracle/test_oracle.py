"""Soundness and power of pruning: random tables and predicates against Spark's own answer on the rows."""

from __future__ import annotations

import pytest

from oracle.report import REQUIRED
from oracle.run import Campaign, Size

pytestmark = pytest.mark.spark

VERDICTS = 9_000
POWER = 0.97
# the rest: files without statistics, collections, columns that changed their type; of few whole queries, one is much
DECIDED = {"stored statistics": 0.9, "whole queries": 0.85}


@pytest.fixture(scope="module")
def campaign(spark, tmp_path_factory, request):
    seed = request.config.getoption("--oracle-seed")
    print(f"\n--oracle-seed={seed}")
    running = Campaign(spark, tmp_path_factory.mktemp("oracle"), seed, Size(predicates=60))
    try:
        running.until(VERDICTS)
    finally:
        for key in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled"):
            spark.conf.unset(key)
        print(running.text())
    return running


def test_no_file_with_a_matching_row_is_skipped(campaign):
    wrong = [str(wrong) for report in campaign.reports.values() for wrong in report.wrong]
    assert not wrong, "\n".join(wrong[:20])


def test_enough_was_asked(campaign):
    assert campaign.verdicts >= VERDICTS
    assert all(report.verdicts for report in campaign.reports.values())
    covered = {cell for report in campaign.reports.values() for cell in report.cells}
    assert sorted(REQUIRED - covered) == []


@pytest.mark.parametrize("source", ["stored statistics", "whole queries", "rules alone"])
def test_what_bounds_exclude_is_skipped(campaign, source):
    report = campaign.reports[source]
    assert report.provable_verdicts > report.verdicts / 20
    assert report.power >= POWER, report.missed.most_common(20)


def test_no_file_that_is_said_to_match_fully_has_another_row(campaign):
    reports = [campaign.reports[source] for source in ("stored statistics", "rules alone")]
    assert sum(report.match_verdicts for report in reports) > VERDICTS / 2
    assert all(report.matched > report.match_verdicts / 100 for report in reports)
    assert [wrong for report in reports for wrong in report.wrong_matches][:20] == []


@pytest.mark.parametrize("source", DECIDED)
def test_files_without_a_match_are_skipped_by_predicates_on_one_column(campaign, source):
    report = campaign.reports[source]
    assert report.useless_verdicts > report.verdicts / 10
    assert report.decided >= DECIDED[source], report.undecided.most_common(20)
