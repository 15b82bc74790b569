"""What other libraries know of a table that they have opened, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metastore.store.credentials import FROM_ENVIRONMENT, Credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from metastore.adapters.lineage import Lineage
    from metastore.format.data_files import DataFile


@dataclass(frozen=True, kw_only=True)
class CurrentTable:
    """A table that a library has opened.

    Attributes:
        format: As in `contract/formats.json`.
        name: Its name for people.
        location: Its root.
        lineage: Its snapshots and columns.
        list_files: Lists the data files of the current snapshot; their `deletes` is not None if rows are deleted.
        access: The library's credentials for the location.
    """

    format: str
    name: str
    location: str
    lineage: Lineage
    list_files: Callable[[], Iterable[DataFile]]
    access: Credentials = field(default=FROM_ENVIRONMENT, repr=False)
