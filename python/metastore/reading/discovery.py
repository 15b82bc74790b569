"""Searches for the statistics of a location."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import FORMAT_NAMES, describe_format
from metastore.errors import InvalidArgument, NoStatistics, TableNotFound, UnsupportedTable
from metastore.format.name_mapping import has_mapped_columns, resolve_as_analyzed
from metastore.path_names import is_location
from metastore.reading.other_files import describe_other_files
from metastore.store import Store
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials
from metastore.store.folder import Folder
from metastore.store.location import FOLDER, local_path
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from metastore.errors import MetastoreError
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.format.name_mapping import NameMapping


_TABLE_STORE = re.compile(f"(?:{'|'.join(FORMAT_NAMES)})-.+")
"""The name of a table's store in a root of stores."""


@dataclass(frozen=True)
class Discovery:
    """Result of a search for statistics; without a manifest nothing was ever analyzed.

    Attributes:
        subject: The location or table as the user wrote it.
        store: The store, or None.
        manifest: The store's manifest: see `FoundStatistics`.
        access: How the location is reached on an object store.
    """

    subject: str
    store: Store | None
    manifest: Manifest | None
    access: Credentials = field(default=FROM_ENVIRONMENT, repr=False, kw_only=True)

    @property
    def location(self) -> str:
        """The folder of the table's files now, even if it was copied, moved or mounted since it was analyzed."""
        return self.subject

    @property
    def has_moved(self) -> bool:
        """Whether the folder is not where it was analyzed."""
        return False

    @property
    def table_format(self) -> str | None:
        """The table's format, or None if it was not analyzed."""
        return None

    @property
    def table_name(self) -> str:
        """The table's name in its catalog, else its location."""
        return self.subject

    @property
    def catalog_name(self) -> str:
        """The table's name when it was analyzed; empty if it has none."""
        return ""

    @property
    def is_named_by_path(self) -> bool:
        """Whether the table was analyzed by its path, and not by a name in a catalog."""
        return "/" in self.catalog_name

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """The analyzed snapshots, oldest first."""
        return ()

    def is_called(self, table: str) -> bool:  # noqa: ARG002 - see `FoundStatistics`
        """Return whether this table has the name, or a name that ends in it, or the uuid or location."""
        return False

    def was_analyzed_at(self, location: str) -> bool:  # noqa: ARG002 - see `FoundStatistics`
        """Return whether the table lay at a location when it was analyzed."""
        return False

    def resolve_columns(self, mapping: NameMapping | None = None) -> Discovery:  # noqa: ARG002 - see `FoundStatistics`
        """Resolve the columns of data files without field ids: by the table's mapping, else as they were analyzed."""
        return self

    def without_statistics(self) -> Discovery:
        """Return the same search without a result."""
        return Discovery(self.subject, store=None, manifest=None, access=self.access)

    def keep_reads(self) -> Discovery:
        """Return the same, for many questions: what is read of the store is kept."""
        return self

    def explain_missing(self, table: str | None = None) -> MetastoreError:
        """Return the error that there are no statistics: the table was not analyzed, or it cannot be."""
        name = table or self.subject
        if self.store is None and is_location(self.subject):
            other_files = describe_other_files(Folder(self.subject, self.access))
            if other_files:
                return UnsupportedTable(name, other_files)
        return NoStatistics(name)


@dataclass(frozen=True)
class FoundStatistics(Discovery):
    """Result of a search that found a manifest.

    Attributes:
        store: The store.
        manifest: The store's manifest.
        root: The folder of the data files, if the store lies in it.
    """

    store: Store
    manifest: Manifest
    root: str | None = None

    @property
    def location(self) -> str:
        """The folder of the table's files now."""
        if self.has_moved:
            return _normalize(str(self.root))
        return self.manifest.table.location

    @property
    def has_moved(self) -> bool:
        """Whether the folder is not where it was analyzed."""
        if not self.root:
            return False
        return not self.was_analyzed_at(self.root)

    @property
    def table_format(self) -> str:
        """The table's format."""
        return self.manifest.table.format

    @property
    def table_name(self) -> str:
        """The table's name in its catalog, else its location."""
        return self.catalog_name or self.manifest.table.location

    @property
    def catalog_name(self) -> str:
        """The table's name when it was analyzed; empty if it has none."""
        return self.manifest.table.name

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """The analyzed snapshots, oldest first."""
        return self.manifest.snapshots

    def is_called(self, table: str) -> bool:
        """Return whether this table has the name, or a name that ends in it, or the uuid or location."""
        identity = self.manifest.table
        names = (identity.name, identity.uuid, identity.location)
        return table in names or identity.name.endswith(f".{table}")

    def was_analyzed_at(self, location: str) -> bool:
        """Return whether the table lay at a location when it was analyzed."""
        return _normalize(self.manifest.table.location) == _normalize(location)

    def resolve_columns(self, mapping: NameMapping | None = None) -> Discovery:
        """Resolve the columns of data files without field ids: by the table's mapping, else as they were analyzed."""
        if mapping is not None:
            return replace(self, manifest=mapping.resolve_manifest(self.manifest))
        if not has_mapped_columns(self.manifest):
            return self
        return replace(self, manifest=self._resolve_mapped_columns())

    def keep_reads(self) -> Discovery:
        """Return the same, for many questions: what is read of the store is kept."""
        return replace(self, store=self.store.keep_reads())

    def _resolve_mapped_columns(self) -> Manifest:
        mapping = self._read_name_mapping()
        if mapping is None:
            return resolve_as_analyzed(self.manifest)
        return mapping.resolve_manifest(self.manifest)

    def _read_name_mapping(self) -> NameMapping | None:
        if self.table_format not in FORMAT_NAMES:
            return None
        lineage = describe_format(self.table_format).read_lineage(Folder(self.location, self.access))
        if lineage is None:
            return None
        return lineage.name_mapping


def discover(location: str, table: str | None = None, access: Credentials = FROM_ENVIRONMENT) -> Discovery:
    """Find the statistics of a table's location, of a store, or of one table in a root of stores.

    Args:
        location: The location.
        table: The name of one of several tables.
        access: How the location is reached on an object store.
    """
    if not location.strip():
        raise InvalidArgument("location", "it is empty")
    discovery = _search(location, table, access)
    if table is None or discovery.is_called(table):
        return discovery
    near = [discovery.catalog_name] if discovery.manifest else ()
    raise TableNotFound(table, near=near)


def _search(location: str, table: str | None, access: Credentials) -> Discovery:
    folder = Folder(location, access)
    names = folder.names()
    store = _find_store(folder, names)
    if store is not None:
        return _read_store(location, store)
    if any(map(_TABLE_STORE.fullmatch, names)):
        return _choose_table(location, discover_all(folder), table)
    discovery = _search_configured_root(location)
    if discovery is not None:
        return discovery
    if not folder.exists():
        raise report_missing(location)
    return Discovery(location, store=None, manifest=None, access=access)


def report_missing(location: str) -> TableNotFound:
    """Return the error that a location does not exist, with the names of folders that look like it."""
    if not is_location(location):
        return TableNotFound(location, verb="summary")
    parent, slash, name = location.rstrip("/").rpartition("/")
    if not slash or local_path(location) is None:
        return TableNotFound(location)
    similar = find_similar_names(name, Folder(parent + slash).names())
    return TableNotFound(location, near=[parent + slash + folder for folder in similar])


def discover_all(root: Folder) -> list[Discovery]:
    """Find all tables with statistics under a root of stores, or the one table at this location."""
    names = root.names()
    store = _find_store(root, names)
    if store is not None:
        return [_read_store(root.uri, store)]
    discoveries = [_read_store(root.uri, root / name) for name in filter(_TABLE_STORE.fullmatch, names)]
    return [discovery for discovery in discoveries if discovery.manifest]


def _find_store(folder: Folder, names: Collection[str]) -> Folder | None:
    """Find the store: a folder with these names is one, or has one in it."""
    if FOLDER in names:
        return folder / FOLDER
    if "log" in names and "objects" in names:
        return folder
    return None


def _read_store(subject: str, folder: Folder) -> Discovery:
    store = Store.open(folder.uri, access=folder.access)
    manifest = store.read()
    if manifest is None:
        return Discovery(subject, store, manifest=None, access=folder.access)
    parent, _, name = folder.uri.rpartition("/")
    root = (parent or "/") if name == FOLDER else None
    return FoundStatistics(subject, store, manifest, root=root, access=folder.access)


def _choose_table(location: str, discoveries: Sequence[Discovery], table: str | None) -> Discovery:
    """Choose the table with a name, or the only table if no name is given."""
    chosen = discoveries
    if table is not None:
        chosen = [discovery for discovery in discoveries if discovery.is_called(table)]
    if len(chosen) == 1:
        return chosen[0]
    names = sorted(discovery.table_name for discovery in discoveries)
    if chosen:
        raise InvalidArgument("table", f"{location} has statistics of {', '.join(names)}", "Name one of them.")
    name = table or location
    raise TableNotFound(name, near=find_similar_names(name, names), known=names)


def _search_configured_root(location: str) -> Discovery | None:
    from metastore import configuration  # noqa: PLC0415 - slow to import, and seldom needed

    root = configuration.get("spark.metastore.store")
    if not root:
        return None
    for discovery in discover_all(Folder(root)):
        if discovery.was_analyzed_at(location):
            return discovery
    return None


def _normalize(location: str) -> str:
    path = local_path(location)
    if path is None:
        return location.rstrip("/")
    return os.path.abspath(path)  # noqa: PTH100 - as text, no link is followed
