"""Answers of the reading verbs: small immutable tables that show themselves.

An answer is a sequence of rows. It prints as text, renders in notebooks and terminals, draws itself, and converts to
Arrow, pandas, Polars, Spark and plain Python. Values of columns (minimum, maximum, quantiles) are texts in the table,
as Spark's CAST renders them (binary ones as `X'00FF'`), so that columns of all types fit into one; `Summary.column`
gives them typed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

from metastore.errors import ColumnNotFound, LibraryNotFound
from metastore.format.spark_text import parse_spark_text
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pandas as pd  # type: ignore[import-untyped] # optional, and so are its stubs
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console, ConsoleOptions, RenderableType


VERSION_OF_DOCUMENT = 1
TYPED = ("min", "max", "q25", "q50", "q75", "top_value")


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Rows that answer one question about one table, a query or the settings.

    Attributes:
        kind: The verb: `summary`, `files`, `columns`, ...
        subject: The table, location or query that it is about.
        columns: The names of its columns.
        rows: The rows, each with all columns; read only.
        schema: The Arrow schema of its rows, or None to infer it from their values.
        snapshot: The snapshot that the numbers belong to, if there is one.
        current: Whether the table still is at that snapshot, or None if unknown.
        analyzed_at: The time when the numbers were computed.
        zone: The time zone in which timestamps are written.
        column_name: The column that all rows are about, if they are about one.
    """

    kind: str
    subject: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    schema: pa.Schema | None = None
    snapshot: str | None = None
    current: bool | None = None
    analyzed_at: datetime | None = None
    zone: str = "UTC"
    column_name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(MappingProxyType(dict(row)) for row in self.rows))

    def __reduce__(self) -> tuple[type[Answer], tuple[Any, ...]]:
        # Views of dictionaries cannot be pickled.
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self), tuple({**values, "rows": tuple(map(dict, self.rows))}.values())

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return to_arrow_table(self.rows, self.columns, self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows for whatever reads Arrow: `pa.table(answer)`, or DuckDB, which finds a variable by name."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame.

        Raises:
            LibraryNotFound: pandas is not installed.
        """
        require_library("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame.

        Raises:
            LibraryNotFound: Polars is not installed.
        """
        frame: pl.DataFrame = require_library("polars", "to_polars()").from_arrow(self.to_arrow())
        return frame

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame of a session, classic or Connect."""
        from metastore.adapters.spark_versions import create_frame  # noqa: PLC0415 - answers do without Spark

        return create_frame(spark, self.to_arrow())

    def plot(self, library: str | None = None) -> Any:
        """Draws a histogram, frequencies or quantiles.

        Args:
            library: `matplotlib` or `altair`; the first of them that is installed if None.

        Returns:
            The axes of matplotlib, or the chart of Altair, for the caller to change and save.

        Raises:
            InvalidArgument: An answer of another kind, or another library.
            LibraryNotFound: The library, or either of them, is not installed.

        Example:
            >>> axes = metastore.open("/warehouse/db/sales").histogram("price").plot()  # doctest: +SKIP
            >>> axes.figure.savefig("price.png")  # doctest: +SKIP
        """
        from metastore.display.plots import draw  # noqa: PLC0415 - only what is shown needs it

        return draw(self, library)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as one document of plain Python values, the same that `--json` prints.

        Its `version` grows when fields change their meaning, not when fields are added.
        """
        head = {"version": VERSION_OF_DOCUMENT, "kind": self.kind, "subject": self.subject}
        if self.column_name is not None:
            head["column"] = self.column_name
        if self.snapshot is not None:
            head |= {"snapshot": self.snapshot, "current": self.current, "analyzed_at": self.analyzed_at}
        return {**head, "rows": list(self)}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(dict, self.rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [dict(row) for row in self.rows[index]]
        return dict(self.rows[index])

    def __repr__(self) -> str:
        from metastore.display.plain_text import render  # noqa: PLC0415 - only what is shown needs it

        return render(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from metastore.display.terminal import render  # noqa: PLC0415 - as above

        yield render(self, options.max_width)

    def _repr_html_(self) -> str:
        from metastore.display.html import render  # noqa: PLC0415 - as above

        return render(self)


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Answer):
    """One row per column of a table.

    Attributes:
        measure_ranks: Reads how exact quartiles are, once somebody looks; None where that is not known.
    """

    measure_ranks: Callable[[], Mapping[str, float | None]] | None = None

    @cached_property
    def rank_errors(self) -> Mapping[str, float | None]:
        """By what share of its values the ranks of a column's quartiles may be off at most; None where it is not known.

        Columns of which nothing is known are not here.
        """
        if self.measure_ranks is None:
            return {}
        return self.measure_ranks()

    def __reduce__(self) -> tuple[type[Answer], tuple[Any, ...]]:
        kind, (*values, _) = super().__reduce__()
        return kind, (*values, partial(dict, self.rank_errors))

    def column(self, name: str) -> dict[str, Any]:
        """Return the row of one column, its values typed.

        Integers come as `int`, decimals as `Decimal`, dates as `date`, timestamps as `datetime`, binary values as
        `bytes`; text stays text, and a value that Python's type cannot hold (a date after the year 9999) stays text as
        well.

        Raises:
            ColumnNotFound: The table has no such column, or the summary does not hold it.
        """
        names = [row["column_name"] for row in self.rows]
        if name not in names:
            raise ColumnNotFound(name, self.subject, near=find_similar_names(name, names), known=names)
        row = self[names.index(name)]
        values = {key: parse_spark_text(row[key], row["column_type"], self.zone) for key in TYPED if key in row}
        return {**row, **values}


def require_library(name: str, purpose: str) -> Any:
    """Return a library that is not one of ours to require.

    Raises:
        LibraryNotFound: It is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise LibraryNotFound(name.partition(".")[0], purpose) from error


def to_arrow_table(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], schema: pa.Schema | None = None
) -> pa.Table:
    """Return rows as an Arrow table; maps are dictionaries in rows."""
    import pyarrow as pa  # noqa: PLC0415 - an answer that is only shown does without

    types = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
    columns = {}
    for name in names:
        values = [_to_pairs(row[name]) for row in rows]
        columns[name] = pa.array(values, types.get(name))  # a later server may give columns that the schema lacks
    return pa.table(columns)


def _to_pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value
