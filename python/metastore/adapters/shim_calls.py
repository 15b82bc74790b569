"""Errors of the shim as errors of this package."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from metastore import errors, jars, jvm_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession


_CODE = re.compile(r"\[(METASTORE_[A-Z_]+)\]\s*(.*?)(?:\s*SQLSTATE: \w+)?(?:;\s*line \d+.*)?$", re.MULTILINE)
_QUESTION = re.compile(r"Did you mean (.+)\?\s*$")
_NO_FUNCTION = ("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "UNRESOLVED_ROUTINE")


@contextmanager
def translate_errors(subject: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Turns what Spark raises for a function of ours into the error it stands for; other errors pass."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - only here

    try:
        yield
    except PySparkException as error:
        found = _translate(error, subject, spark)
        if found is None:
            raise
        # The Java side of the trace says nothing about a mistake in an argument.
        raise found from None


def _translate(error: PySparkException, subject: str, spark: SparkSession | None) -> errors.MetastoreError | None:
    text = str(error)
    match = _CODE.search(text)
    if match:
        return _restore_facts(match[1], match[2], _read_facts(error)) or _rebuilt(match[1], match[2], subject)
    if spark is not None and any(one in text for one in _NO_FUNCTION) and "metastore_" in text.lower():
        return jars.explain_missing_shim(spark.version)
    return None


def _read_facts(error: PySparkException) -> Mapping[str, str]:
    """Return the facts that an error of the shim was made of, or none if Spark does not hand them over."""
    try:
        return dict(error.getMessageParameters() or {})
    except Exception:  # noqa: BLE001 - of py4j, or of a server that has ended; the text of the error is there
        return {}


def _restore_facts(code: str, message: str, facts: Mapping[str, str]) -> errors.MetastoreError | None:
    """Make the same error in Python; None if its text would be another."""
    restore = _RESTORED.get(code)
    try:
        error = restore(facts) if restore is not None else None
    except KeyError:  # the shim of another version
        return None
    is_same = error is not None and str(error) == f"[{code}] {message.strip()}"
    return error if is_same else None


def _restore_no_statistics(facts: Mapping[str, str]) -> errors.MetastoreError:
    analyzed = facts.get("analyzed")
    if analyzed:
        return errors.NoStatistics(facts["table"], facts["detail"], analyzed=analyzed.split(", "))
    return errors.NoStatistics(
        facts["table"],
        detail=facts["detail"],
        columns=facts["columns"],
        in_statements=facts["in_statements"],
        caveat=facts["caveat"],
    )


_RESTORED: Mapping[str, Callable[[Mapping[str, str]], errors.MetastoreError]] = {
    errors.NoStatistics.code: _restore_no_statistics,
    errors.InvalidSetting.code: lambda facts: errors.InvalidSetting(
        facts["setting"], facts["value"], facts["reason"], facts["hint"]
    ),
}
"""Errors whose facts a shell makes its own hints of."""


def _rebuilt(code: str, message: str, subject: str) -> errors.MetastoreError:
    kinds = {kind.code: kind for kind in errors.MetastoreError.__subclasses__()}
    kind = kinds.get(code, errors.MetastoreError)
    error = kind.__new__(kind)
    error.__dict__.update(message=message.strip(), hint="", table=subject, near=_near(message), known=())
    error.args = (message.strip(),)
    return error


def _near(message: str) -> tuple[str, ...]:
    found = _QUESTION.search(message)
    return tuple(found[1].split(" or ")) if found else ()


def require_columns(rows: DataFrame, table: str) -> DataFrame:
    """Rows that are columns of one table as they are stored."""
    with translate_errors(table):
        _checks(rows).requireColumns(table, jvm_session.to_jvm_rows(rows))
    return rows


def require_unchanged(rows: DataFrame, table: str) -> DataFrame:
    """A query that runs as it was written: no rule that others gave to the session acts on it."""
    with translate_errors(table):
        _checks(rows).requireUnchanged(table, jvm_session.to_jvm_rows(rows))
    return rows


def export_to_session_catalog(spark: SparkSession, table: str) -> str:
    """Write statistics into the session catalog; JSON with what was written."""
    with translate_errors(table, spark):
        shim = jvm_session.load_shim_class(spark, "CatalogExport")
        return str(shim.write(jvm_session.to_jvm_session(spark), table))


def _checks(rows: DataFrame) -> Any:
    return jvm_session.load_shim_class(rows.sparkSession, "RowPermission")
