"""Tables that pyiceberg or deltalake has opened, and their current data files, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore.errors import InvalidArgument, TableNotFound
from metastore.path_names import is_location
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


def open_table(location: Any) -> CurrentTable | None:
    """Describe a table that a library has opened, or open one by its name; None for a location.

    Raises:
        InvalidArgument: It is none of these.
        TableNotFound: It is a name that its catalog does not have.
    """
    if isinstance(location, PathLike):
        return None
    if not isinstance(location, str):
        return describe_table(location)
    table = load_named_table(location)
    return None if table is None else describe_table(table)


def describe_table(table: Any) -> CurrentTable:
    """Describe a table that pyiceberg or deltalake has opened.

    Raises:
        InvalidArgument: It is another object.
    """
    names = set()
    for base in type(table).__mro__:
        package = base.__module__.partition(".")[0]
        names.add(f"{package}.{base.__name__}")
    if "pyiceberg.Table" in names:
        from metastore.adapters.pyiceberg_tables import describe_iceberg_table  # noqa: PLC0415 - pyiceberg is there

        return describe_iceberg_table(table)
    if "deltalake.DeltaTable" in names:
        from metastore.adapters.deltalake_tables import describe_delta_table  # noqa: PLC0415 - deltalake is there

        return describe_delta_table(table)
    class_name = f"{type(table).__module__}.{type(table).__qualname__}"
    raise InvalidArgument(
        "location", f"{class_name} is no table that is known", "Give a location, a pyiceberg Table or a DeltaTable."
    )


def load_named_table(name: str) -> Any | None:
    """Load an Iceberg table by its name, such as `catalog.db.t`, in a catalog that pyiceberg is configured for.

    Returns:
        A pyiceberg `Table`; None if the name is a path, or its first part is no catalog in pyiceberg's configuration.

    Raises:
        TableNotFound: The catalog has no such table.
    """
    catalog_name, _, identifier = name.partition(".")
    is_name = bool(identifier) and not is_location(name) and not Path(name).exists()
    if not is_name or find_spec("pyiceberg") is None:
        return None
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - pyiceberg is there
    from pyiceberg.exceptions import (  # noqa: PLC0415 - as above
        NoSuchIdentifierError,
        NoSuchNamespaceError,
        NoSuchTableError,
    )
    from pyiceberg.utils.config import Config  # noqa: PLC0415 - as above

    properties: Any = Config().get_catalog_config(catalog_name)
    if properties is None:
        return None
    try:
        return load_catalog(catalog_name, **properties).load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchIdentifierError) as error:
        raise TableNotFound(name) from error
