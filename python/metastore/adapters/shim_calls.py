"""Calls the shim, and translates its errors to those of this package."""

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
    """Raise an error of our functions in Spark as the error of this package; other errors pass unchanged."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - only here

    try:
        yield
    except PySparkException as error:
        translation = _translate(error, subject, spark)
        if translation is None:
            raise
        # The Java stack trace does not help with a wrong argument.
        raise translation from None


def _translate(error: PySparkException, subject: str, spark: SparkSession | None) -> errors.MetastoreError | None:
    text = str(error)
    match = _CODE.search(text)
    if match:
        code, message = match.groups()
        facts = _read_facts(error)
        return _restore_from_facts(code, message, facts) or _rebuild_from_text(code, message, subject)
    if spark is not None and _is_missing_function(text):
        return jars.explain_missing_shim(spark.version)
    return None


def _is_missing_function(text: str) -> bool:
    return "metastore_" in text.lower() and any(code in text for code in _NO_FUNCTION)


def _read_facts(error: PySparkException) -> Mapping[str, str]:
    """Return the parameters of an error of the shim; empty if Spark does not have them."""
    try:
        return dict(error.getMessageParameters() or {})
    except Exception:  # noqa: BLE001 - an error of py4j, or of a server that has ended: the text is enough
        return {}


def _restore_from_facts(code: str, message: str, facts: Mapping[str, str]) -> errors.MetastoreError | None:
    """Make the same error in Python; None if its text would differ."""
    restore = _RESTORED.get(code)
    if restore is None:
        return None
    try:
        error = restore(facts)
    except KeyError:  # the shim of another version
        return None
    is_same = str(error) == f"[{code}] {message.strip()}"
    if is_same:
        return error
    return None


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
"""Errors from whose parameters a shell makes its own hints."""


def _rebuild_from_text(code: str, message: str, subject: str) -> errors.MetastoreError:
    kinds = {kind.code: kind for kind in errors.MetastoreError.__subclasses__()}
    kind = kinds.get(code, errors.MetastoreError)
    text = message.strip()
    error = kind.__new__(kind)
    error.__dict__.update(
        message=text,
        hint="",
        table=subject,
        near=_parse_near_names(message),
        known=(),
    )
    error.args = (text,)
    return error


def _parse_near_names(message: str) -> tuple[str, ...]:
    match = _QUESTION.search(message)
    if match:
        return tuple(match[1].split(" or "))
    return ()


def require_columns(rows: DataFrame, table: str) -> DataFrame:
    """Require that the rows are stored columns of one table, and return them."""
    with translate_errors(table):
        _checks(rows).requireColumns(table, jvm_session.to_jvm_rows(rows))
    return rows


def require_unchanged(rows: DataFrame, table: str) -> DataFrame:
    """Require that no rule added to the session changes the query, and return it."""
    with translate_errors(table):
        _checks(rows).requireUnchanged(table, jvm_session.to_jvm_rows(rows))
    return rows


def select_versions(table: DataFrame, versions: Mapping[str, str]) -> DataFrame:
    """Read a table, but only some of its data files; these are the input files of the result.

    Args:
        table: Any rows of the table.
        versions: The version of a data file's rows as text, by its location. A file that has another version by now is
            left out.
    """
    versioned_rows = jvm_session.load_shim_class(table.sparkSession, "VersionedRows")
    selected = versioned_rows.select(jvm_session.to_jvm_rows(table), dict(versions))
    return jvm_session.from_jvm_rows(selected, table)


def export_to_session_catalog(spark: SparkSession, table: str) -> str:
    """Write statistics into the session catalog, and describe them in JSON."""
    with translate_errors(table, spark):
        shim = jvm_session.load_shim_class(spark, "CatalogExport")
        return str(shim.write(jvm_session.to_jvm_session(spark), table))


def _checks(rows: DataFrame) -> Any:
    return jvm_session.load_shim_class(rows.sparkSession, "RowPermission")
