"""Names of tables and columns that the shell offers: of analyzed tables, without starting Spark.

Tables are those of the root of stores (`spark.metastore.store`) and of local warehouses that Spark's settings name.
A name that does not exist is no mistake: then the shell completes paths.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import islice, product
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from metastore.errors import MetastoreError
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from metastore.reading.discovery import Discovery


_MOST = 1000
"""The number of folders of warehouses that are looked at for one completion."""
_DEPTHS = ("*", "*/*", "*/*/*")


def complete_table(ctx: Any, incomplete: str) -> list[str]:
    """List the names of analyzed tables that begin like this; none for a path, which the shell completes itself."""
    from metastore.path_names import is_location  # noqa: PLC0415 - the program imports this module at every start

    if is_location(incomplete):
        return []
    tables = _list_tables(_read_conf(ctx))
    return _offer(map(itemgetter(0), tables), incomplete)


def complete_column(ctx: Any, incomplete: str) -> list[str]:
    """List the columns of the table on the command line, by its statistics."""
    table = ctx.params.get("table") or _first_argument(ctx.args)
    return _offer(_list_columns(table, _read_conf(ctx)), incomplete)


def _first_argument(words: Iterable[str]) -> str:
    # The parser has assigned no word to an argument while an option at the end waits for its value.
    return next((word for word in words if not word.startswith("-")), "")


def complete_columns(ctx: Any, incomplete: str) -> list[str]:
    """List the same for the last name of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_column(ctx, last)]


def _offer(names: Iterable[str], incomplete: str) -> list[str]:
    # The shell is in the middle of a line: names that cannot be read or seen are left out, and no message disturbs it.
    logging.disable()
    offered = set()
    try:
        for name in names:
            is_readable = make_visible(name) == name
            if is_readable and name.startswith(incomplete):
                offered.add(name)
    except Exception:  # noqa: BLE001 - as above
        return []
    return sorted(offered)


def _list_columns(table: str, conf: dict[str, str]) -> Iterator[str]:
    """The columns of the newest snapshot with statistics."""
    for discovery in _find_table(table, conf):
        if discovery.snapshots:
            newest = discovery.snapshots[-1]
            yield from map(attrgetter("name"), newest.columns)


def _find_table(table: str, conf: dict[str, str]) -> Iterator[Discovery]:
    from metastore.path_names import is_location  # noqa: PLC0415 - as above
    from metastore.reading.discovery import discover  # noqa: PLC0415 - slow to import

    if is_location(table):
        yield discover(table)
        return
    for name, discovery in _list_tables(conf):
        if name == table:
            yield discovery


def _list_tables(conf: dict[str, str]) -> Iterator[tuple[str, Discovery]]:
    for discovery in _discover_tables(conf):
        if discovery.catalog_name:
            yield discovery.catalog_name, discovery


def _discover_tables(conf: dict[str, str]) -> Iterator[Discovery]:
    from metastore import configuration  # noqa: PLC0415 - slow to import
    from metastore.reading.discovery import discover, discover_all  # noqa: PLC0415 - slow to import
    from metastore.store.folder import Folder  # noqa: PLC0415 - slow to import

    key = "spark.metastore.store"
    root = configuration.get(key, argument=conf.get(key))
    if root:
        yield from discover_all(Folder(root))
    for folder in islice(_warehouse_folders(conf), _MOST):
        if (folder / "_metastore").is_dir():
            with suppress(MetastoreError):  # a table that cannot be read hides no other
                yield discover(str(folder))


def _warehouse_folders(conf: dict[str, str]) -> Iterator[Path]:
    """The folders of tables and of databases, and whatever else lies there."""
    for warehouse, depth in product(_list_warehouses(conf), _DEPTHS):
        yield from warehouse.glob(depth)


def _list_warehouses(conf: dict[str, str]) -> Iterator[Path]:
    from pathlib import Path  # noqa: PLC0415 - slow to import

    from metastore.spark.session import read_spark_defaults  # noqa: PLC0415 - slow to import
    from metastore.store.location import local_path  # noqa: PLC0415 - slow to import

    settings = {"spark.sql.warehouse.dir": "spark-warehouse", **read_spark_defaults(), **conf}
    warehouses = [text for key, text in settings.items() if key.endswith((".warehouse", ".warehouse.dir"))]
    for path in filter(None, map(local_path, warehouses)):
        yield Path(path)


def _read_conf(ctx: Any) -> dict[str, str]:
    settings = {}
    for text in ctx.params.get("conf") or ():
        key, _, value = text.partition("=")
        settings[key.strip()] = value.strip()
    return settings
