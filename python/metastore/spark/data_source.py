"""`spark.read.format("metastore")`: statistics as data frames, without a jar.

A Python data source has no session: it reads a location. The shim in the JVM replaces a table's name by its location
before anything is read; without the shim a name cannot be resolved, and the error says so.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType


_OPTIONS = frozenset({"table", "path", "view", "column", "file"})
_SPARK_OPTIONS = frozenset({"comment", "provider", "location", "owner", "external", "paths"})
"""Options that Spark adds for a table of its catalog, and for a read of several paths."""


class MetastoreDataSource(DataSource):
    """The data source `metastore`.

    Options: `table` (a name) or `path` (a location; also the argument of `load`), and `view`: `summary` (default),
    `files`, `columns`, `snapshots`, `ranks`, `frequencies`, `histograms` or `histograms_wide`. The option `column`
    narrows all but `files` and `snapshots` to one column, `file` the same without `ranks` to one data file.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name in `format("metastore")`."""
        return "metastore"

    def schema(self) -> str:
        """Return the columns of the view; `summary` of a location has one more for each user-defined statistic."""
        import metastore  # noqa: PLC0415 - Spark imports this module at each look-up
        from metastore.path_names import is_location  # noqa: PLC0415 - as above
        from metastore.reading.views import VIEWS  # noqa: PLC0415 - as above

        with _hide_worker_trace():
            view = self._view()
        table = self._find_table()
        schema = VIEWS[view]
        if is_location(table):
            with suppress(metastore.MetastoreError):  # the reader raises it
                schema = metastore.open(table).schema(view, self.options.get("column"), self.options.get("file"))
        return to_ddl(schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is the view's
        """Return a reader of the view.

        It takes no filters: Spark 4.1 keeps a Python reader, with the filters of one query, for all later queries of
        the same data frame, which would lose rows (`PythonScanBuilder.pushFilters` stores it by `setReadInfo` in the
        relation's `PythonDataSourceV2`). The options `column` and `file` narrow what is read.
        """
        import metastore  # noqa: PLC0415 - as above

        column = self.options.get("column")
        file = self.options.get("file")
        with _hide_worker_trace():
            location = self._location()
            view = self._view()
            metastore.open(location).check(view, column, file)  # not in the task, whose errors have many lines of Java
        return ViewReader(location, view, column, file)

    def _view(self) -> str:
        from metastore.errors import InvalidArgument  # noqa: PLC0415 - as above
        from metastore.reading.views import VIEWS  # noqa: PLC0415 - as above
        from metastore.suggestions import suggest_names  # noqa: PLC0415 - as above

        self._refuse_unknown()
        view = (self.options.get("view") or "summary").lower()
        if view in VIEWS:
            return view
        hint = suggest_names(view, VIEWS) or f"Views: {', '.join(VIEWS)}."
        raise InvalidArgument("view", f"there is no view {view}", hint)

    def _refuse_unknown(self) -> None:
        """Refuse a misspelt option: Spark itself says nothing about options that a source does not know."""
        from metastore.errors import InvalidArgument  # noqa: PLC0415 - as above

        for option in {name.lower() for name in self.options} - _OPTIONS - _SPARK_OPTIONS:
            hint = _explain_option(option)
            if hint:
                raise InvalidArgument(option, "it is not an option of the data source", hint)

    def _find_table(self) -> str:
        """Return the location or the name of the table; empty if there is none."""
        return self.options.get("path") or self.options.get("table") or ""

    def _location(self) -> str:
        from metastore.errors import InvalidArgument, UnsupportedTable  # noqa: PLC0415 - as above
        from metastore.path_names import is_location  # noqa: PLC0415 - as above

        table = self._find_table()
        if not table:
            raise InvalidArgument("table", "no table is given", "Say .load(<location>) or .option('table', <name>).")
        if is_location(table):
            return table
        raise UnsupportedTable(
            table,
            "a table's name is resolved by the Metastore's jar, which this Spark does not have",
            'Give the table\'s location, or start Spark with --jars "$(metastore jar)".',
        )


def _explain_option(name: str) -> str:
    """Return the hint for an option that does not exist; empty for one that may be meant for others."""
    from metastore.suggestions import suggest_names  # noqa: PLC0415 - as above

    if name == "at":
        return "Ask metastore.summary(t, at => ...)."
    return "" if "." in name else suggest_names(name, _OPTIONS)


class ViewReader(DataSourceReader):
    """A reader of one view of the statistics at a location."""

    def __init__(self, location: str, view: str, column: str | None, file: str | None) -> None:
        self._location = location
        self._view = view
        self._column = column
        self._file = file

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - one partition
        """Read the rows, as Arrow batches."""
        import metastore  # noqa: PLC0415 - the worker imports what it needs

        rows = metastore.open(self._location).view(self._view, self._column, self._file)
        return iter(rows.to_batches())


@contextmanager
def _hide_worker_trace() -> Iterator[None]:
    """Let Spark show an error of ours in one line, without the trace of the worker, which ends with it."""
    from metastore.errors import MetastoreError  # noqa: PLC0415 - as above

    try:
        yield
    except MetastoreError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # the worker reads it when it reports to the driver
        raise


def to_ddl(schema: pa.Schema) -> str:
    """Write an Arrow schema as Spark's DDL."""
    columns = []
    for field in schema:
        name = field.name.replace("`", "``")
        columns.append(f"`{name}` {_ddl_type(field.type)}")
    return ", ".join(columns)


def _ddl_type(kind: pa.DataType) -> str:
    import pyarrow as pa  # noqa: PLC0415 - see the module's first import

    if pa.types.is_map(kind):
        return f"MAP<{_ddl_type(kind.key_type)}, {_ddl_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{_ddl_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _DDL[str(kind)]


_DDL = {
    "string": "STRING",
    "binary": "BINARY",
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "timestamp[us, tz=UTC]": "TIMESTAMP",
}
