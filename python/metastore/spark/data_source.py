"""`spark.read.format("metastore")`: statistics as data frames, without a jar.

A Python data source has no session: it reads a location. Where a table's name is given, the shim in the JVM puts the
location in its place before anything is read; without the shim a name cannot be resolved, and the error says so.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType


_OPTIONS = frozenset({"table", "path", "view", "column", "file"})
_SPARKS = frozenset({"comment", "provider", "location", "owner", "external", "paths"})
"""What Spark adds to the options of a table of its catalog, and of a read of several paths."""


class MetastoreDataSource(DataSource):
    """The data source `metastore`.

    Options: `table` (a name) or `path` (a location; also the argument of `load`), and `view`: `summary` (default),
    `files`, `columns`, `snapshots`, `ranks`, `frequencies`, `histograms` or `histograms_wide`. The option `column`
    narrows all but `files` and `snapshots` to one column, `file` the same without `ranks` to one data file.
    """

    @classmethod
    def name(cls) -> str:
        """The name in `format("metastore")`."""
        return "metastore"

    def schema(self) -> str:
        """The columns of the view; `summary` of a location has one more for each user-defined statistic."""
        import metastore  # noqa: PLC0415 - Spark imports this module at each look-up
        from metastore.path_names import is_location  # noqa: PLC0415 - as above
        from metastore.reading.views import VIEWS  # noqa: PLC0415 - as above

        with _told_in_one_line():
            view = self._view()
        given = self.options.get("path") or self.options.get("table") or ""
        try:
            narrowed = (self.options.get("column"), self.options.get("file"))
            return to_ddl(metastore.open(given).schema(view, *narrowed) if is_location(given) else VIEWS[view])
        except metastore.MetastoreError:
            return to_ddl(VIEWS[view])  # the reader says what is wrong

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is the view's
        """A reader of the view.

        It takes no filters: Spark 4.1 keeps a Python reader, with the filters of one query, for all later queries of
        the same data frame, which would lose rows (`PythonScanBuilder.pushFilters` stores it by `setReadInfo` in the
        relation's `PythonDataSourceV2`). The options `column` and `file` narrow what is read.
        """
        import metastore  # noqa: PLC0415 - as above

        column, file = self.options.get("column"), self.options.get("file")
        with _told_in_one_line():
            location, view = self._location(), self._view()
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
        raise InvalidArgument(
            "view", f"there is no view {view}", suggest_names(view, VIEWS) or f"Views: {', '.join(VIEWS)}."
        )

    def _refuse_unknown(self) -> None:
        """Refuses what looks like an option: of those that a source does not know Spark itself says nothing."""
        from metastore.errors import InvalidArgument  # noqa: PLC0415 - as above
        from metastore.suggestions import suggest_names  # noqa: PLC0415 - as above

        for option in {name.lower() for name in self.options} - _OPTIONS - _SPARKS:
            at = "Ask metastore.summary(t, at => ...)." if option == "at" else ""
            hint = at or ("" if "." in option else suggest_names(option, _OPTIONS))
            if hint:
                raise InvalidArgument(option, "it is not an option of the data source", hint)

    def _location(self) -> str:
        from metastore.errors import (  # noqa: PLC0415 - spares every other use its time
            InvalidArgument,
            UnsupportedTable,
        )
        from metastore.path_names import is_location  # noqa: PLC0415 - as above

        given = self.options.get("path") or self.options.get("table")
        if not given:
            raise InvalidArgument("table", "no table is given", "Say .load(<location>) or .option('table', <name>).")
        if is_location(given):
            return given
        raise UnsupportedTable(
            given,
            "a table's name is resolved by the Metastore's jar, which this Spark does not have",
            'Give the table\'s location, or start Spark with --jars "$(metastore jar)".',
        )


class ViewReader(DataSourceReader):
    """Reads one view of the statistics at a location."""

    def __init__(self, location: str, view: str, column: str | None, file: str | None) -> None:
        self._location = location
        self._view = view
        self._column = column
        self._file = file

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - one partition
        """The rows, as Arrow batches."""
        import metastore  # noqa: PLC0415 - the worker imports what it needs

        found = metastore.open(self._location).view(self._view, self._column, self._file)
        return iter(found.to_batches())


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Lets Spark show an error of ours without the trace of the worker, which ends with it."""
    from metastore.errors import MetastoreError  # noqa: PLC0415 - as above

    try:
        yield
    except MetastoreError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # the worker looks when it tells the driver
        raise


def to_ddl(schema: pa.Schema) -> str:
    """An Arrow schema as Spark's DDL."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {_ddl_type(field.type)}" for field in schema)


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
