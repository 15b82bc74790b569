"""Errors in a shell advise commands."""

from __future__ import annotations

import pytest

from metastore import errors
from metastore.cli.shell_hints import phrase_for_shell
from metastore.reading.discovery import report_missing

OF_SPARK = (
    "t has no statistics: ANALYZE TABLE by its name is Spark's own until spark.metastore.analyze.formats has parquet. "
    "Run: ANALYZE TABLE parquet.`/t` COMPUTE STATISTICS FOR ALL COLUMNS"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (str(errors.NoStatistics("db.t")), "db.t has no statistics. Run: metastore analyze db.t"),
        (
            "Run: ANALYZE TABLE parquet.`/a b` COMPUTE STATISTICS FOR ALL COLUMNS",
            "Run: metastore analyze 'parquet.`/a b`'",
        ),
        ("Run: ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS `a`, b", "Run: metastore analyze t --columns '`a`, b'"),
        (OF_SPARK, "t has no statistics. Run: metastore analyze 'parquet.`/t`'"),
        (report_missing("db.t").hint, "A location is expected here. By name, with Spark: metastore summary db.t."),
        (
            "it comes from: file. metastore.settings() shows what is in force.",
            "metastore config shows what is in force.",
        ),
        ("There is no table t.", "There is no table t."),
    ],
)
def test_statements_and_calls_become_commands(text, words):
    assert phrase_for_shell(text).endswith(words)
    assert "ANALYZE" not in phrase_for_shell(text)
