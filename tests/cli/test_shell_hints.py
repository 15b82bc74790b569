"""Errors in a shell advise commands, made of the facts that the errors carry."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from metastore import errors
from metastore.adapters import shim_calls
from metastore.cli.shell_hints import phrase_hint
from metastore.reading.discovery import report_missing

CAVEAT = "ANALYZE TABLE by its name is Spark's own until spark.metastore.analyze.formats has parquet."
SHOWN_BY = "metastore.settings() shows what is in force."


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (errors.NoStatistics("db.t"), "Run: metastore analyze db.t"),
        (errors.NoStatistics("t", in_statements="parquet.`/a b`"), "Run: metastore analyze 'parquet.`/a b`'"),
        (errors.NoStatistics("t", columns="`a`, b"), "Run: metastore analyze t --columns '`a`, b'"),
        (
            errors.NoStatistics("t", in_statements="parquet.`/t`", caveat=CAVEAT),
            "Run: metastore analyze 'parquet.`/t`'",
        ),
        (errors.NoStatistics("/no/t"), "Run: metastore analyze <its name>"),
        (
            errors.NoStatistics("t", analyzed=["7"]),
            "ANALYZE computes them for the current snapshot only. Nearest analyzed snapshots: 7.",
        ),
        (report_missing("db.t"), "A location is expected here. By name, with Spark: metastore summary db.t."),
        (errors.TableNotFound("t", near=["u"], verb="summary"), "Did you mean u?"),
        (
            errors.TableNotFound("t", verb="filtered_summary"),
            "A location is expected here. By name, with Spark: metastore filtered-summary t.",
        ),
        (errors.TableNotFound("t"), ""),
        (
            errors.InvalidSetting("spark.metastore.enabled", "x", "no", SHOWN_BY),
            "metastore config shows what is in force.",
        ),
        (errors.InvalidSetting("spark.metastore.enabled", "x", "no"), ""),
        (errors.InvalidArgument("top", "it is 0", "Give 1."), "Give 1."),
    ],
)
def test_a_hint_names_commands(error, hint):
    assert phrase_hint(error) == hint


def test_statements_name_the_same_facts():
    error = errors.NoStatistics("t", "of u", columns="a", in_statements="parquet.`/t`", caveat=CAVEAT)
    assert error.message == "t has no statistics of u."
    assert error.hint == f"{CAVEAT} Run: ANALYZE TABLE parquet.`/t` COMPUTE STATISTICS FOR COLUMNS a"
    assert (
        report_missing("db.t").hint
        == "A location is expected here. With Spark, by name: metastore.summary(spark, 'db.t')."
    )


FACTS = {"table": "t", "in_statements": "t", "detail": "of u", "columns": "a", "caveat": ""}
COMMAND = "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a"


@pytest.mark.parametrize(
    ("facts", "columns"),
    [
        (FACTS, "a"),
        ({"table": "t"}, ""),  # of a shim of another version
        ({**FACTS, "detail": "of w"}, ""),  # which says something else
        (None, ""),
    ],
)
def test_facts_of_the_shim_are_taken_where_they_say_the_same(facts, columns):
    text = f"[METASTORE_NO_STATISTICS] t has no statistics of u. Run: {COMMAND}"
    raised = PySparkException(text)
    raised.getMessageParameters = lambda: facts
    with pytest.raises(errors.NoStatistics) as caught, shim_calls.translate_errors("t"):
        raise raised
    assert str(caught.value) == text
    assert caught.value.columns == columns
    assert phrase_hint(caught.value) == ("Run: metastore analyze t --columns a" if columns else "")
