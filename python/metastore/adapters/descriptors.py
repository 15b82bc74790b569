"""The interface of a table format, and the formats by name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from metastore.adapters.identifiers import location_sql
from metastore.contract import format_names, formats_with, property_of_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.lineage import Lineage
    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.name_mapping import NameMapping
    from metastore.store.folder import Folder


FORMAT_NAMES = format_names()
WITH_LOG_FILES = formats_with("log_files")
"""Table formats with log files beside the data files, which may change any value of a row."""
DIRECTORIES = formats_with("directory")
"""Table formats whose only metadata is the listing of a directory: partition values stand in its paths."""


class EncodedSketch(NamedTuple):
    """A sketch of a column's values, for other engines.

    Attributes:
        data: A theta sketch as Apache DataSketches serialises it.
        distinct: The number of distinct values that it estimates.
    """

    data: bytes
    distinct: int


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """A table format: the constant `FORMAT` in the module of `metastore.adapters` with its name.

    Attributes:
        name: Its name in settings, manifests and folders of stores.
        complete: Completes the shim's facts of a table by the format's own rules.
        pin_snapshot: Pins reads of a table that has a snapshot to it, as far as the format can.
        file_sql: SQL of a row's data file.
        shows_uri: Whether the result of `file_sql` is a URI, which differs from `DataFile.location`.
        position_sql: SQL of a row's position in its file; None if the format shows none.
        has_sql_paths: Whether SQL reads a table by its path.
        may_hide_positions: Whether some tables show no positions.
        deleted_sql: SQL of whether a row is deleted, where deleted rows can be read as well.
        read_lineage: Reads the snapshots from the metadata in a table's folder, without Spark; None if these are
            uncertain.
        find_name_mapping: Finds the name mapping of a table; None for formats whose readers do not look for field ids.
        read_properties: Reads the table properties from the metadata in a table's folder, without Spark; None if
            unknown.
        refuse_expressions: Returns the reason why a table has no statistics of expressions, or None.
        name_snapshot: Names the snapshot of a list of data files, if a listing is the only kind of snapshot.
        count_deleted_rows: Counts by path the deleted rows of data files that the table's metadata does not count.
        publish_sketches: Writes sketches of a snapshot's columns, by their keys, for other engines, unless they exist,
            and returns the keys of all columns with such a sketch; None if the format has no such statistics.
        keys_in: Where a table may have keys of its own for its location: in the properties of its FileIO, or in
            settings of Hadoop; "session" if it has none.
    """

    name: str
    complete: Callable[[ShimAnswer], TableFacts]
    pin_snapshot: Callable[[TableFacts, CatalogEntry], TableFacts] = lambda facts, _: facts
    file_sql: str = "_metadata.file_path"
    shows_uri: bool = True
    position_sql: str | None = "_metadata.row_index"
    has_sql_paths: bool = True
    may_hide_positions: bool = False
    deleted_sql: str | None = None
    read_lineage: Callable[[Folder], Lineage | None] = lambda _: None
    find_name_mapping: Callable[[CatalogEntry], NameMapping | None] = lambda _: None
    read_properties: Callable[[Folder], Mapping[str, str] | None] = lambda _: None
    refuse_expressions: Callable[[TableFacts], str | None] = lambda _: None
    name_snapshot: Callable[[Sequence[DataFile]], str] | None = None
    count_deleted_rows: Callable[[SparkSession, TableFacts, Sequence[DataFile]], Mapping[str, int]] | None = None
    publish_sketches: Callable[[SparkSession, TableFacts, Mapping[str, EncodedSketch]], set[str]] | None = None
    keys_in: Literal["session", "file-io", "hadoop"] = "session"

    @property
    def title(self) -> str:
        """The format's name as people write it."""
        return str(property_of_formats("title")[self.name])

    def location_of(self, file: str) -> str:
        """Write SQL of `DataFile.location`, from SQL of a value of `file_sql`."""
        return location_sql(file) if self.shows_uri else file


def describe_format(name: str) -> TableFormat:
    """Return the table format of that name, one of FORMAT_NAMES."""
    if name not in FORMAT_NAMES:  # such as in the manifest of a later version
        raise ValueError(f"{name} is no table format")
    return cast("TableFormat", import_module(f"metastore.adapters.{name}").FORMAT)
