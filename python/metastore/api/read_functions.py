"""Public functions that read statistics.

Those that take a Spark session send a SQL function and wrap its rows: they work wherever SQL does, Connect included.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

from metastore.adapters.table_libraries import open_table
from metastore.answers import Answer, Summary
from metastore.errors import InvalidArgument
from metastore.format.time_zones import parse_time_zone
from metastore.reading.discovery import discover
from metastore.reading.distribution_rows import check_probabilities
from metastore.reading.table_answers import Statistics, add_distributions
from metastore.spark import analyze_statement, session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from deltalake import DeltaTable
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import DataFrame, SparkSession


def open(  # noqa: A001 - `metastore.open`
    location: str | PathLike[str] | IcebergTable | DeltaTable, table: str | None = None, zone: str = "UTC"
) -> Statistics:
    """Opens statistics without Spark and without a JVM.

    Args:
        location: A table's location, its store, or the root of many stores (`spark.metastore.store`). Or the table
            itself, as pyiceberg (a `Table`) or deltalake (a `DeltaTable`) has opened it: then it is known which
            snapshot is current, and which data files it has; its statistics are read with the keys of the table. The
            name of an Iceberg table, such as `catalog.db.t`, is enough where pyiceberg is configured for the catalog.
        table: Which table, where the location is a root of several.
        zone: The time zone in which timestamps are written, and those of filters are read.

    Raises:
        TableNotFound: There is no such location, or no such table. A location without statistics is no mistake yet:
            `files` and `snapshots` of it are empty, the other verbs raise NoStatistics, or UnsupportedTable where its
            files are of a format that cannot be analyzed.
        FormatTooNew: A later version wrote it.
        InvalidArgument: There is no such time zone, the location is empty or holds several tables, or it is no table of
            a library that is known.

    Example:
        >>> metastore.open("/warehouse/db/sales").summary().column("price")["max"]  # doctest: +SKIP
        Decimal('99.95')
    """
    parse_time_zone(zone)
    opened = open_table(location)
    if opened is None:
        path = fspath(cast("str | PathLike[str]", location))
        return Statistics(discover(path, table).resolve_columns(), zone)
    discovery = discover(opened.location, table, opened.access).resolve_columns(opened.lineage.name_mapping)
    return Statistics(discovery, zone, opened)


@session.require_session
def summary(
    spark: SparkSession, table: str, *, file: str | None = None, at: str | int | datetime | None = None
) -> Summary:
    """One row per column of a table: bounds, distinct values, quantiles, nulls.

    Args:
        spark: A session, classic or Connect.
        table: A name, or a path such as ``delta.`/path` ``.
        file: Path of one data file, to see that file alone.
        at: A snapshot id, version or instant; the current one if None.

    Raises:
        NoStatistics: The table was not analyzed.
        TableNotFound: There is no such table.
        JarNotFound: The Spark of this session does not have the Metastore's jar.

    Example:
        >>> metastore.summary(spark, "db.sales").column("price")["approx_unique"]  # doctest: +SKIP
        1204
    """
    return session.call_function(spark, "summary", table, {"file": file, "at": at}, Summary)


@session.require_session
def frequencies(
    spark: SparkSession,
    table: str,
    column: str,
    top: int | None = None,
    *,
    file: str | None = None,
    at: str | int | datetime | None = None,
) -> Answer:
    """One row per value of a column, most frequent first; null is none, NaN is one.

    Args:
        spark: A session, classic or Connect.
        table: A name, or a path such as ``delta.`/path` ``.
        column: Its name.
        top: How many; all that are kept if None.
        file: Path of one data file, to see that file alone.
        at: A snapshot id, version or instant; the current one if None.

    Raises:
        NoStatistics: No values are kept of this column.
        ColumnNotFound: No such column.

    Example:
        >>> metastore.frequencies(spark, "db.sales", "country", 10)[0]["value"]  # doctest: +SKIP
        'NL'
    """
    return session.call_function(
        spark, "frequencies", table, {"column": column, "top": top, "file": file, "at": at}, Answer
    )


@session.require_session
def histogram(
    spark: SparkSession,
    table: str,
    column: str,
    bins: int | None = None,
    *,
    file: str | None = None,
    at: str | int | datetime | None = None,
) -> Answer:
    """One row per bin of a column; null and NaN are in none.

    Args:
        spark: A session, classic or Connect.
        table: A name, or a path such as ``delta.`/path` ``.
        column: Its name.
        bins: How many, at most as many as there are; all if None.
        file: Path of one data file, to see that file alone.
        at: A snapshot id, version or instant; the current one if None.

    Raises:
        NoStatistics: There is no histogram of this column.
        ColumnNotFound: No such column.

    Example:
        >>> len(metastore.histogram(spark, "db.sales", "price", bins=20))  # doctest: +SKIP
        20
    """
    return session.call_function(
        spark, "histogram", table, {"column": column, "bins": bins, "file": file, "at": at}, Answer
    )


@session.require_session
def quantiles(
    spark: SparkSession,
    table: str,
    column: str,
    probabilities: float | Sequence[float] | None = None,
    *,
    at: str | int | datetime | None = None,
) -> Answer:
    """One row per probability: the value that so large a share of a column's values does not exceed.

    Taken from the histogram, as the quartiles of `summary` are; `error` says by what share of the values its rank may
    be off at most, and `exact` whether that is 0. A column without values has null for each.

    Args:
        spark: A session, classic or Connect.
        table: A name, or a path such as ``delta.`/path` ``.
        column: Its name.
        probabilities: From 0 to 1, one or several; 0, 0.05, 0.25, 0.5, 0.75, 0.95 and 1 if None.
        at: A snapshot id, version or instant; the current one if None.

    Raises:
        NoStatistics: There is no histogram of this column.
        ColumnNotFound: No such column.

    Example:
        >>> metastore.quantiles(spark, "db.sales", "price", [0.5])[0]["value"]  # doctest: +SKIP
        '19.95'
    """
    text = None if probabilities is None else ",".join(map(repr, check_probabilities(probabilities)))
    return session.call_function(spark, "quantiles", table, {"column": column, "probabilities": text, "at": at}, Answer)


@session.require_session
def locate(spark: SparkSession, table: str, columns: str | Sequence[str], keys: DataFrame) -> DataFrame:
    """Locates the rows of a table that have one of some keys: any number of keys, of one column or of several.

    Bounds, value lists and bloom filters of the data files tell which files may have a key; the key's columns of these
    files alone are then read. Deleted rows are not found. Keys are equal as in `<=>`: null is null, NaN is NaN. Every
    data file is read of a table that was not analyzed, and over Spark Connect, where the statistics are out of reach.

    Args:
        spark: A session, classic or Connect.
        table: A name as in SQL.
        columns: The key's columns.
        keys: A DataFrame with columns of these names; others are not looked at, and a key that comes twice is one key.
            It is read more than once: give it cached where it is dear or may change. Values of another type are
            converted where that is exact; a key that the column's type cannot hold is in no row.

    Returns:
        One row for each row of the table that has one of the keys: the key's columns as the table has them, `path`
        (string, the data file) and `position` (bigint, the row's place in it, deleted rows counted, from 0). Keys that
        the table does not have are absent. The files were chosen at the table's newest snapshot.

    Raises:
        TableNotFound: There is no such table.
        ColumnNotFound: The table has no such column.
        InvalidArgument: `keys` lacks a column or has one whose type does not compare, or values of a column cannot be
            located (lists, maps).
        UnsupportedTable: A table of a kind that is not handled.

    Example:
        >>> keys = spark.createDataFrame([(7,), (8,)], "id bigint")  # doctest: +SKIP
        >>> metastore.locate(spark, "db.sales", "id", keys).groupBy("path").count().show()  # doctest: +SKIP
    """
    from metastore.key_lookup.key_rows import locate_rows  # noqa: PLC0415 - nothing else needs it, and it takes a while

    names = [columns] if isinstance(columns, str) else list(columns)
    session.check_session(spark)
    if not names:
        raise InvalidArgument("columns", "the list of names is empty")
    if not hasattr(keys, "selectExpr"):
        hint = _suggest_frame(table, names, keys)
        raise InvalidArgument("keys", f"a DataFrame is expected, not {type(keys).__name__}", hint)
    return locate_rows(spark, table, names, keys, pruned=not analyze_statement.is_connect(spark))


def _suggest_frame(table: str, columns: Sequence[str], keys: object) -> str:
    """Say what to type for a single key."""
    first = keys[0] if isinstance(keys, list) and keys else keys
    key = first if isinstance(first, tuple) else (first,)
    frame = f"metastore.locate(spark, {table!r}, {columns!r}, spark.createDataFrame([{key!r}], {columns!r}))"
    if len(columns) != 1:
        return f"Say {frame}."
    sql = f"SELECT * FROM metastore.locate({table!r}, {columns[0]!r}, {key[0]!r})"
    return f'Say {frame} for rows, or spark.sql("{sql}") for the files that may hold it.'


@session.require_session
def files(spark: SparkSession, table: str, *, at: str | int | datetime | None = None) -> Answer:
    """One row per data file of a table: size, rows, partition, how much of it is analyzed.

    Example:
        >>> len(metastore.files(spark, "db.sales"))  # doctest: +SKIP
        48
    """
    return session.call_function(spark, "files", table, {"at": at}, Answer)


@session.require_session
def columns(spark: SparkSession, table: str, column: str | None = None) -> Answer:
    """One row per data file and column: what pruning knows.

    Example:
        >>> metastore.columns(spark, "db.sales", "price")[0]["max"]  # doctest: +SKIP
        '99.95'
    """
    return session.call_function(spark, "columns", table, {"column": column}, Answer)


@session.require_session
def layout(spark: SparkSession, table: str, column: str | None = None) -> Answer:
    """One row per column: how its values are spread over the data files, and the statement that would help.

    Returns:
        `files_per_lookup`, how many data files may hold the value of a row, as far as all statistics tell (the mean of
        up to 32 values), and `lookup_error`, its standard error; `overlap_depth`, the average number of files, itself
        included, whose bounds share a value with a file's; `sorted`, the share of files whose values no other file's
        bounds enclose, where ends may be equal; `advice`, where these look-ups would read at most half as many files of
        the sorted table, as `whatif` tells.

    Example:
        >>> metastore.layout(spark, "db.sales", "customer")[0]["advice"]  # doctest: +SKIP
        "OPTIMIZE db.sales ZORDER BY (customer)"
    """
    return session.call_function(spark, "layout", table, {"column": column}, Answer)


@session.require_session
def snapshots(spark: SparkSession, table: str) -> Answer:
    """One row per analyzed snapshot of a table.

    Example:
        >>> metastore.snapshots(spark, "db.sales")[-1]["current"]  # doctest: +SKIP
        True
    """
    return session.call_function(spark, "snapshots", table, {}, Answer)


@session.require_session
def tables(spark: SparkSession, database: str | None = None) -> Answer:
    """One row per table with statistics, of a database or of the current one.

    Example:
        >>> [row["table"] for row in metastore.tables(spark, "db")]  # doctest: +SKIP
        ['cat.db.sales']
    """
    return session.call_function(spark, "tables", database, {}, Answer)


@session.require_session
def diff(
    spark: SparkSession,
    table: str,
    before: str | int | datetime,
    after: str | int | datetime | None = None,
    *,
    distributions: bool = False,
    added: bool = False,
) -> Answer:
    """One row per column and measure of the summary that differs between two analyzed snapshots of a table.

    What is true of the whole table, `count` and `files`, stands first and names no column; then the largest changes.

    Args:
        spark: The session.
        table: Name of the table.
        before: A snapshot, or a time, as `at` of `summary`: each is described as `summary` describes it.
        after: The other one; not given: the current snapshot.
        distributions: Whether each column of both snapshots has two more rows, `psi` (the population stability index)
            and `js_distance` (the Jensen-Shannon distance, 0 to 1), whose `change` says how far its values are
            distributed otherwise: 0 where they are not, null with a `reason` where it is not known. See
            `metastore.reading.distribution_changes` for bins and formulas.
        added: Whether the data files that came after `before` are compared with the table at `before`: a batch of 5 %
            of the rows shows undiluted. Files that others were rewritten to do not count, as far as analyzed snapshots
            tell them; where it is not known which came, `change` is null and `reason` says why.

    Example:
        >>> monday = metastore.snapshots(spark, "db.sales")[0]["snapshot"]  # doctest: +SKIP
        >>> metastore.diff(spark, "db.sales", monday)[0]  # doctest: +SKIP
        {'column_name': None, 'measure': 'count', 'before': '100', 'after': '120', 'change': 20.0, 'reason': None}
    """
    arguments: dict[str, object] = {"from": before, "to": after}
    if added:
        arguments |= {"added": True, "distributions": distributions}
    answer = session.call_function(spark, "diff", table, arguments, Answer)
    if added or not distributions:
        return answer
    from metastore.spark.discovery_by_name import open_by_name  # noqa: PLC0415 - nothing else needs settings, which take a while

    old, new = (summary(spark, table, at=at).snapshot for at in (before, after))
    return add_distributions(answer, old, new, [open_by_name(spark, table, answer.zone)])


@session.require_session
def version(spark: SparkSession) -> dict[str, Any]:
    """The version of the Metastore inside a Spark, with that of Spark, Scala and the store's format.

    Raises:
        JarNotFound: The Spark of this session does not have the Metastore's jar.

    Example:
        >>> metastore.version(spark)["format"]  # doctest: +SKIP
        1
    """
    return session.call_function(spark, "version", None, {}, Answer)[0]
