"""Every error that the Metastore raises on purpose.

One tree, one stable code an error, as `contract/errors.json` has it for the shim, too, so that a mistake
reads the same from SQL, Python and the command line. The facts of an error are attributes; its text is built
from them.

Example:
    >>> from metastore.errors import ColumnNotFound
    >>> error = ColumnNotFound("pirce", table="db.sales", near=["price"])
    >>> str(error)
    "[METASTORE_COLUMN_NOT_FOUND] db.sales has no column 'pirce'. Did you mean price?"
    >>> error.column
    'pirce'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from metastore.contract import read_contract
from metastore.path_names import name_in_statements
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


__all__ = [
    "AccessDenied",
    "AnalyzeFailed",
    "CatalogFailed",
    "CollectionRefused",
    "ColumnNotFound",
    "CommitUnknown",
    "DamagedObject",
    "Failed",
    "FormatTooNew",
    "InvalidArgument",
    "InvalidSetting",
    "JarNotFound",
    "LibraryNotFound",
    "MetastoreError",
    "NoSpark",
    "NoStatistics",
    "StoreNotReadable",
    "StoreNotWritable",
    "TableNotFound",
    "UnsupportedTable",
]


_CODES: dict[str, str] = {entry["class"]: entry["code"] for entry in read_contract("errors")["errors"]}
_MOST_NAMES = 5
_NEAREST = 3


_TWO_STOPS = re.compile(r"(?<!\.)\.\.(?= |$)")
"""The end of a sentence that quotes one."""


class MetastoreError(Exception):
    """The base of all errors of the Metastore.

    Attributes:
        code: The stable name of the kind of error, the same in SQL and in Python.
        message: What happened, in one line. What it quotes of tables and stores is shown, see `metastore.visible_text`.
        hint: What to do about it; empty where nothing general can be said.
    """

    code: ClassVar[str] = "METASTORE_ERROR"

    def __init_subclass__(cls) -> None:
        cls.code = _CODES.get(cls.__name__, cls.code)

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = _TWO_STOPS.sub(".", make_visible(message))
        self.hint = make_visible(hint)
        super().__init__(self.message, self.hint)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}" + (f" {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[Callable[..., MetastoreError], tuple[Any, ...]]:
        # Subclasses are built from facts, not from `args`: executors send errors to the driver pickled.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[MetastoreError], args: tuple[Any, ...], facts: dict[str, Any]) -> MetastoreError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(facts)
    return error


def phrase_suggestion(names: Sequence[str]) -> str:
    """Return the hint that names similar names; empty without any.

    Example:
        >>> phrase_suggestion(["price", "prize"])
        'Did you mean price or prize?'
    """
    return f"Did you mean {' or '.join(names)}?" if names else ""


def _known(names: Sequence[str]) -> str:
    """Return the hint that names what there is, where nothing is similar."""
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"Known: {', '.join(names[:_MOST_NAMES])}{more}."


class NoStatistics(MetastoreError):
    """A table has no statistics of the kind asked for.

    Attributes:
        table: The table as the user named it.
        in_statements: The table as statements name it: a location as ``parquet.`/path` ``, or `<its name>` where it has
            no such name.
        columns: The columns that lack statistics, as statements name them; empty: all.
        command: The statement that makes the statistics.
        analyzed: Analyzed snapshots, the nearest first, where an old snapshot was asked for that no statement reaches.
    """

    in_statements: str = ""
    columns: str = ""
    analyzed: tuple[str, ...] = ()

    def __init__(
        self,
        table: str,
        detail: str = "",
        columns: str = "",
        in_statements: str | None = None,
        analyzed: Sequence[str] = (),
        caveat: str = "",
    ) -> None:
        self.table = table
        self.analyzed = tuple(analyzed)
        self.columns = columns
        self.in_statements = in_statements or name_in_statements(table)
        clause = f"COLUMNS {columns}" if columns else "ALL COLUMNS"
        self.command = f"ANALYZE TABLE {self.in_statements} COMPUTE STATISTICS FOR {clause}"
        if analyzed:
            hint = (
                "ANALYZE computes them for the current snapshot only. "
                f"Nearest analyzed snapshots: {', '.join(self.analyzed[:_NEAREST])}."
            )
        else:
            hint = f"{caveat} Run: {self.command}".lstrip()
        super().__init__(f"{table} has no statistics{f' {detail}' if detail else ''}.", hint)


class TableNotFound(MetastoreError):
    """A table, or a location that should hold one, does not exist.

    Attributes:
        table: The table as the user named it.
        near: Existing names that look like it.
        known: The names that were found where it was looked for.
        verb: The verb that takes the name with Spark, where a location was expected.
    """

    verb: str = ""

    def __init__(
        self, table: str, near: Sequence[str] = (), hint: str = "", known: Sequence[str] = (), verb: str = ""
    ) -> None:
        self.table = table
        self.near = tuple(near)
        self.known = tuple(known)
        self.verb = verb
        if verb:
            hint = f"A location is expected here. With Spark, by name: metastore.{verb}(spark, {table!r})."
        super().__init__(f"There is no table {table}.", phrase_suggestion(self.near) or hint or _known(self.known))


class ColumnNotFound(MetastoreError):
    """A table has no column of that name.

    Attributes:
        column: The column as the user named it.
        table: The table.
        near: Existing columns whose names look like it.
        known: The columns of the table.
    """

    def __init__(self, column: str, table: str, near: Sequence[str] = (), known: Sequence[str] = ()) -> None:
        self.column = column
        self.table = table
        self.near = tuple(near)
        self.known = tuple(known)
        super().__init__(f"{table} has no column '{column}'.", phrase_suggestion(self.near) or _known(self.known))


class FormatTooNew(MetastoreError):
    """Statistics were written by a later version whose format this version does not know.

    Attributes:
        where: The object that says so.
        found: The format version, or the feature, that is not known here.
    """

    def __init__(self, where: str, found: str) -> None:
        self.where = where
        self.found = found
        super().__init__(
            f"The statistics at {where} need {found}, which this version does not know.",
            "Upgrade pyspark-metastore.",
        )


class StoreNotReadable(MetastoreError):
    """The place of the statistics does not answer, or refuses.

    Attributes:
        store: The URI of the store.
        reason: Why.
    """

    def __init__(self, store: str, reason: str, hint: str = "") -> None:
        self.store = store
        self.reason = reason
        super().__init__(f"Statistics cannot be read from {store}: {reason}.", hint)


class StoreNotWritable(MetastoreError):
    """The place for the statistics cannot be written, or not safely.

    Attributes:
        store: The URI of the store.
        reason: Why.
    """

    def __init__(self, store: str, reason: str, hint: str = "") -> None:
        self.store = store
        self.reason = reason
        super().__init__(
            f"Statistics cannot be written to {store}: {reason}.",
            hint or "Set spark.metastore.store to a writable folder to keep statistics away from the table.",
        )


class CommitUnknown(MetastoreError):
    """The store's answers do not tell whether a commit took place.

    Nothing is damaged and nothing was deleted: the commit is either there completely or not at all. Repeating
    the command is safe; objects that were finished are found again.

    Attributes:
        store: The URI of the store.
        sequence: The number of the manifest in question.
        reason: The last answer of the store.
    """

    def __init__(self, store: str, sequence: int, reason: str) -> None:
        self.store = store
        self.sequence = sequence
        self.reason = reason
        super().__init__(
            f"It is not known whether statistics {sequence} were committed to {store}: {reason}.",
            "Repeat the command; it continues where this one stopped.",
        )


class UnsupportedTable(MetastoreError):
    """A table, or its location, is of a kind that the Metastore does not handle.

    Attributes:
        table: The table or location.
        reason: What is not handled.
    """

    def __init__(self, table: str, reason: str, hint: str = "") -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"{table} is not supported: {reason}.", hint)


class AccessDenied(MetastoreError):
    """A policy or a catalog refuses to let this user read a table: nothing of it was read or written.

    Attributes:
        table: The table.
        reason: Who refuses, in their own words.
    """

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"{table} cannot be read by this user: {reason}.")


class CatalogFailed(MetastoreError):
    """A catalog does not answer, or with an error: nothing is known of the table.

    Attributes:
        table: The table.
        reason: What the catalog says.
    """

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"{table} cannot be looked up: its catalog fails: {reason}.")


class Failed(MetastoreError):
    """Something failed that is nobody's mistake, such as the driver's memory; statistics and table are untouched.

    Attributes:
        table: The table.
        reason: What failed.
    """

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"{table} cannot be answered: {reason}.")


_REPAIR = (
    "Repair the statistics with `metastore analyze TABLE --repair`, or metastore.analyze(spark, table, repair=True)."
)


class DamagedObject(MetastoreError):
    """A stored object is not what was written: truncated, altered, or not one of ours.

    Attributes:
        name: The object.
        reason: What is wrong with it.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name} is damaged: {reason}.", _REPAIR)


class CollectionRefused(MetastoreError):
    """Nothing is deleted because it is not certain what is needed.

    Attributes:
        reason: What cannot be read.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Nothing was deleted: {reason}.", f"{_REPAIR} gc works after the grace period.")


class InvalidArgument(MetastoreError):
    """An argument has a value that it cannot have.

    Attributes:
        argument: The name of the argument.
        reason: What is wrong with its value.
    """

    def __init__(self, argument: str, reason: str, hint: str = "") -> None:
        self.argument = argument
        self.reason = reason
        super().__init__(f"{argument}: {reason}.", hint)


class InvalidSetting(MetastoreError):
    """A setting has a value that it cannot have.

    Attributes:
        setting: The name of the setting.
        value: Its value.
        reason: What is wrong with it.
    """

    def __init__(self, setting: str, value: object, reason: str, hint: str = "") -> None:
        self.setting = setting
        self.value = value
        self.reason = reason
        super().__init__(f"{setting} = {value!r}: {reason}.", hint)


class NoSpark(MetastoreError):
    """Something needs a Spark session, a Spark version or a Java that is not there.

    Attributes:
        reason: What is missing.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason = reason
        super().__init__(f"{reason}.", hint or "Run `metastore doctor` to see what is missing.")


class JarNotFound(MetastoreError):
    """A jar is neither installed nor to be had; the message says which and where it was looked for."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}.", hint or "Run `metastore doctor` to see what is missing.")


class LibraryNotFound(MetastoreError):
    """Something needs a Python library that is not installed.

    Attributes:
        name: The library, or several of which one is enough: the first is named to be installed.
    """

    def __init__(self, name: str, purpose: str) -> None:
        self.name = name
        super().__init__(
            f"{purpose} needs {name}, which is not installed.", f"Run: pip install {name.partition(' ')[0]}"
        )


class AnalyzeFailed(MetastoreError):
    """ANALYZE stopped; the statistics that were there before are untouched.

    Attributes:
        table: The table.
        reason: The first cause.
    """

    def __init__(self, table: str, reason: str, hint: str = "") -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"ANALYZE of {table} failed: {reason}.", hint)
