"""The facts of a table that are needed to analyze it, for all formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metastore.adapters.identifiers import quote_name
from metastore.contract import formats_with
from metastore.format.counts import add_up
from metastore.format.manifest import Manifest, TableIdentity
from metastore.format.table_column import CASTING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.format.data_files import DataFile
    from metastore.format.manifest import Block, Snapshot
    from metastore.format.name_mapping import NameMapping
    from metastore.format.table_column import Column


_DIRECTORIES = formats_with("directory")


@dataclass(frozen=True)
class Refusal:
    """A column, file or other subject that ANALYZE leaves out, and the reason.

    Attributes:
        subject: The column or the data file.
        reason: A sentence from `metastore.adapters.refusals`.
    """

    subject: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """A table at one snapshot.

    Attributes:
        format: As in `contract/formats.json`.
        uuid: Its uuid, which changes when the table is dropped and created again.
        location: Root of the table as its metadata spells it.
        root: The location as a URI with a file system, or as an absolute local path.
        name: Full name, a label.
        identifier: The table as quoted SQL.
        snapshot: Identifier of the snapshot; None for a table that was never written.
        columns: All leaves of the schema, in order.
        files: Data files of the snapshot.
        defaults: Column key to the stored value of rows in files that do not have the column.
        absent_is_null: Whether a column that a file with field ids lacks is null in all its rows.
        local: Whether paths without a scheme are on the local file system.
        snapshot_sql: SQL of the relation at the snapshot, read under the current schema; see `snapshot_options`.
        refused: Columns without statistics, with the reason.
        properties: Table properties, as far as the format has them.
        field_ids: Column key to field id, if keys consist of names and readers look for field ids.
        nameless_is_null: Keys of columns that are null in all rows of a file without a column of that name in any case.
        snapshot_options: Options of Spark's reader that pin the relation if SQL cannot; with `path` if the table has no
            name in SQL.
        has_other_rows: Whether there are rows in other files, such as log files without a base file.
        unsettled: Paths of the data files that were written a moment ago, so that a file that replaces one may have the
            same modification time.
        name_mapping: The name mapping, for formats whose readers look for field ids.
    """

    format: str
    uuid: str
    location: str
    root: str
    name: str
    identifier: str
    snapshot: str | None
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    defaults: Mapping[str, Any]
    absent_is_null: bool
    local: bool
    snapshot_sql: str
    refused: tuple[Refusal, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    field_ids: Mapping[str, int] = field(default_factory=dict)
    nameless_is_null: frozenset[str] = frozenset()
    snapshot_options: Mapping[str, str] = field(default_factory=dict)
    has_other_rows: bool = False
    unsettled: frozenset[str] = frozenset()
    name_mapping: NameMapping | None = None

    @property
    def in_statements(self) -> str:
        """The table's name in ANALYZE TABLE; for a directory its path, because by its name Spark may analyze it."""
        is_named_by_path = self.name.startswith(f"{self.format}.")
        if self.format not in _DIRECTORIES or is_named_by_path:
            return self.name
        return f"{self.format}.{quote_name([self.location])}"

    @property
    def live_rows(self) -> int | None:
        """Number of rows of the table; None if unknown."""
        if self.has_other_rows:
            return None
        return add_up(file.live_rows for file in self.files)

    @property
    def is_physical(self) -> bool:
        """Whether the table has exactly the rows of its data files: other files delete or change none."""
        return not self.has_other_rows and all(file.deletes is None for file in self.files)

    @property
    def renamed(self) -> frozenset[str]:
        """Keys of the columns that have other names in data files, as in Hudi's."""
        keys: set[str] = set()
        if self.casts:
            for file in self.files:
                keys.update(file.unknown, file.names)
        return frozenset(keys)

    @property
    def casts(self) -> bool:
        """Whether readers cast the values of a file that has a column in another type: see `Column`."""
        return self.format in CASTING

    @property
    def identity(self) -> TableIdentity:
        """The table's identity and location, as manifests have it."""
        return TableIdentity(self.format, self.uuid, self.root, self.name)

    def own_manifest(self, manifest: Manifest | None) -> Manifest:
        """Return the manifest if it is of this table, else an empty one."""
        if manifest is None or manifest.table.uuid != self.uuid:
            return Manifest(table=self.identity)
        return manifest

    def resolve_block(self, block: Block) -> Block:
        """Give the columns of a block the table's keys, if the name mapping has not changed them."""
        if self.name_mapping is None:
            return block
        return self.name_mapping.resolve_block(block)

    def resolve_snapshot(self, snapshot: Snapshot) -> Snapshot:
        """Give the columns of a snapshot's entry the table's keys, if the name mapping has not changed them."""
        if self.name_mapping is None:
            return snapshot
        return self.name_mapping.resolve_snapshot(snapshot)
