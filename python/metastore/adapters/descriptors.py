"""What tells the table formats from each other: all that others ask, so that no other module names one."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.adapters.identifiers import location_sql


@dataclass(frozen=True)
class TableFormat:
    """A table format. Its facts are loaded by the module of `metastore.adapters` that is called like it.

    Attributes:
        name: As in settings, manifests and the folders of stores.
        title: As people write it.
        file_sql: SQL of a row's data file.
        shows_uri: Whether that is a URI, and not yet `DataFile.location`.
        position_sql: SQL of a row's position in its file; None where none is shown.
        may_hide_positions: Whether some tables show none.
        deleted_sql: SQL of whether a row is deleted, where deleted rows can be read as well.
        is_cached: Whether Spark keeps what it knows of a table until it is told to look again.
        has_log_files: Whether there are files beside the data files that may change any value of their rows.
    """

    name: str
    title: str
    file_sql: str = "_metadata.file_path"
    shows_uri: bool = True
    position_sql: str | None = "_metadata.row_index"
    may_hide_positions: bool = False
    deleted_sql: str | None = None
    is_cached: bool = False
    has_log_files: bool = False

    def location_of(self, file: str) -> str:
        """SQL of `DataFile.location`, from SQL of what `file_sql` gave."""
        return location_sql(file) if self.shows_uri else file


_ALL = (
    TableFormat(
        *("iceberg", "Iceberg"),
        file_sql="_file",
        shows_uri=False,
        position_sql="_pos",
        deleted_sql="_deleted",
        is_cached=True,
    ),
    TableFormat("delta", "Delta", may_hide_positions=True),  # without deletion vectors and row tracking: SPARK-47731
    TableFormat("hudi", "Hudi", position_sql=None, has_log_files=True),
    TableFormat("parquet", "Parquet"),
)
FORMATS = {one.name: one for one in _ALL}
