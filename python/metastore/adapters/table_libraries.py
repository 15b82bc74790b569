"""Opens tables by pyiceberg and deltalake, which know their current data files without Spark."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore.errors import InvalidArgument
from metastore.path_names import is_location

if TYPE_CHECKING:
    from metastore.adapters.current_tables import CurrentTable


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
    table = _load_by_name(location)
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


def _load_by_name(name: str) -> Any | None:
    catalog, _, identifier = name.partition(".")
    is_name = bool(identifier) and not is_location(name) and not Path(name).exists()
    if not is_name or find_spec("pyiceberg") is None:
        return None
    from metastore.adapters.pyiceberg_tables import load_iceberg_table  # noqa: PLC0415 - pyiceberg is there

    return load_iceberg_table(catalog, identifier)
