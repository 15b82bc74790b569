"""Where the statistics of a location are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import FORMAT_NAMES, describe_format
from metastore.errors import InvalidArgument, NoStatistics, TableNotFound, UnsupportedTable
from metastore.format.name_mapping import has_mapped_columns, resolve_as_analyzed
from metastore.path_names import is_location
from metastore.reading.folder import Folder
from metastore.store import Store
from metastore.store.location import FOLDER, local_path
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from metastore.errors import MetastoreError
    from metastore.format.manifest import Manifest, TableIdentity
    from metastore.format.name_mapping import NameMapping


_OF_A_TABLE = re.compile(f"(?:{'|'.join(FORMAT_NAMES)})-.+")
_OF_FORMATS = {"_delta_log", ".hoodie"}
_OTHER_FILES = {"orc", "csv", "tsv", "json", "jsonl", "avro", "xml", "txt", "arrow", "feather"}


@dataclass(frozen=True)
class Discovery:
    """Where statistics were looked for and what was found.

    Attributes:
        asked: The location as the user wrote it.
        store: The store, None where there is none.
        manifest: Its manifest, None where nothing was ever analyzed.
        root: The folder beside whose files the store lies; None where stores have a place of their own.
    """

    asked: str
    store: Store | None
    manifest: Manifest | None
    root: str | None = None

    @property
    def location(self) -> str:
        """Where the table's files are: not where they were analyzed, if the folder was copied, moved or mounted."""
        if self.manifest is None:
            return self.asked
        return _absolute(self.root) if self.root and self.has_moved else self.manifest.table.location

    @property
    def has_moved(self) -> bool:
        """Whether the folder is not where it was analyzed."""
        return bool(self.manifest and self.root and not _same(self.root, self.manifest.table.location))

    @property
    def is_named_by_path(self) -> bool:
        """Whether it is a table of no catalog."""
        return self.manifest is not None and "/" in self.manifest.table.name

    def resolve_columns(self, mapping: NameMapping | None = None) -> Discovery:
        """Know what columns mean in data files without field ids: as a table reads them, or as they were analyzed."""
        if self.manifest is None or (mapping is None and not has_mapped_columns(self.manifest)):
            return self
        if mapping is None and self.manifest.table.format in FORMAT_NAMES:
            lineage = describe_format(self.manifest.table.format).read_lineage(Folder(self.location))
            mapping = lineage.name_mapping if lineage else None
        resolved = resolve_as_analyzed(self.manifest) if mapping is None else mapping.resolve_manifest(self.manifest)
        return replace(self, manifest=resolved)

    def explain_missing(self, table: str | None = None) -> MetastoreError:
        """Why there are no statistics: nobody analyzed the table, or it is none that can be."""
        other = describe_other_files(self.asked) if self.store is None and is_location(self.asked) else None
        return UnsupportedTable(table or self.asked, other) if other else NoStatistics(table or self.asked)


def describe_other_files(location: str) -> str | None:
    """What lies in a folder that holds data files, but of no format that can be analyzed; None of any other."""
    kinds = _find_other_files(Folder(location))
    if not kinds:
        return None
    listed = ", ".join(kind.upper() for kind in sorted(kinds))
    *titles, last = (describe_format(name).title for name in FORMAT_NAMES if name != "parquet")
    return f"it holds {listed} files, not an {', '.join(titles)} or {last} table or Parquet files"


def _find_other_files(folder: Folder) -> set[str]:
    names = folder.names()
    shown = [name for name in names if not name.startswith((".", "_"))]
    kinds = {part for name in shown if "=" not in name for part in name.lower().split(".")[1:]}
    if "parquet" in kinds or _OF_FORMATS & {*names}:
        return set()
    partition = next((name for name in shown if "=" in name and "." not in name), None)
    return kinds & _OTHER_FILES or (_find_other_files(folder / partition) if partition else set())


def discover(location: str, table: str | None = None) -> Discovery:
    """Finds the statistics of a table's location, of a store, or of one table in a root of stores."""
    if not location.strip():
        raise InvalidArgument("location", "it is empty")
    place = _found(location, table)
    if table is not None and (place.manifest is None or not _is_called(table)(place.manifest.table)):
        raise TableNotFound(table, near=[place.manifest.table.name] if place.manifest else ())
    return place


def _found(location: str, table: str | None) -> Discovery:
    folder = Folder(location)
    names = folder.names()
    if "log" in names and "objects" in names:
        return _place(location, folder)
    if FOLDER in names:
        return _place(location, folder / FOLDER)
    if any(_OF_A_TABLE.fullmatch(name) for name in names):
        return _one_of(location, discover_all(folder), table)
    found = _in_root_of_settings(location)
    if found is not None:
        return found
    if not folder.exists():
        raise report_missing(location)
    return Discovery(location, None, None)


def report_missing(location: str) -> TableNotFound:
    """That there is nothing at a location, and which folders beside it have such a name."""
    if not is_location(location):
        return TableNotFound(location, verb="summary")
    above, slash, name = location.rstrip("/").rpartition("/")
    beside = Folder(above + slash).names() if slash and local_path(location) is not None else ()
    return TableNotFound(location, near=[above + slash + one for one in find_similar_names(name, beside)])


def discover_all(root: Folder) -> list[Discovery]:
    """All tables with statistics under a root of stores; those of a single table where it is not a root."""
    names = root.names()
    if FOLDER in names:
        return [_place(root.uri, root / FOLDER)]
    if "log" in names and "objects" in names:
        return [_place(root.uri, root)]
    stores = (_place(root.uri, root / name) for name in names if _OF_A_TABLE.fullmatch(name))
    return [place for place in stores if place.manifest is not None]


def _place(asked: str, folder: Folder) -> Discovery:
    store = Store.open(folder.uri)
    root, _, name = folder.uri.rpartition("/")
    return Discovery(asked, store, store.read(), (root or "/") if name == FOLDER else None)


def _one_of(location: str, places: list[Discovery], table: str | None) -> Discovery:
    identities = [(place, place.manifest.table) for place in places if place.manifest is not None]
    names = sorted(identity.name or identity.location for _, identity in identities)
    chosen = [place for place, identity in identities if table is None or _is_called(table)(identity)]
    if not chosen:
        raise TableNotFound(table or location, near=find_similar_names(table or location, names), known=names)
    if len(chosen) > 1:
        raise InvalidArgument("table", f"{location} has statistics of {', '.join(names)}", "Name one of them.")
    return chosen[0]


def _is_called(table: str) -> Callable[[TableIdentity], bool]:
    def called(identity: TableIdentity) -> bool:
        return table in (identity.name, identity.uuid, identity.location) or identity.name.endswith(f".{table}")

    return called


def _in_root_of_settings(location: str) -> Discovery | None:
    from metastore import configuration  # noqa: PLC0415 - slow to import, and seldom needed

    root = configuration.get("spark.metastore.store")
    if not root:
        return None
    places = ((place, place.manifest) for place in discover_all(Folder(root)))
    found = (place for place, manifest in places if manifest and _same(manifest.table.location, location))
    return next(found, None)


def _same(one: str, other: str) -> bool:
    return _absolute(one) == _absolute(other)


def _absolute(location: str) -> str:
    path = local_path(location)
    return location.rstrip("/") if path is None else os.path.abspath(path)  # noqa: PTH100 - as text, no link is followed
