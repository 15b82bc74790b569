"""What the shell offers for names of tables and columns: analyzed tables, found without starting Spark.

Tables are those of the root of stores (`spark.metastore.store`) and of local warehouses that Spark's settings name.
A name that is not found is no mistake: then the shell completes paths.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any

from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from metastore.reading.discovery import Discovery


_MOST = 1000
_DEPTHS = ("*", "*/*", "*/*/*")


def complete_table(ctx: Any, incomplete: str) -> list[str]:
    """Names of analyzed tables that begin like this; none for a path, which the shell completes itself."""
    from metastore.path_names import is_location  # noqa: PLC0415 - the program imports this module at every start

    if is_location(incomplete):
        return []
    return _offered((name for name, _ in _tables(_conf(ctx))), incomplete)


def complete_column(ctx: Any, incomplete: str) -> list[str]:
    """Names of the columns of the table that the line names, as its statistics know them."""
    # Behind an option that still waits for its value, no word has been given to an argument.
    table = ctx.params.get("table") or next((word for word in ctx.args if not word.startswith("-")), "")
    return _offered(_columns_of(table, _conf(ctx)), incomplete)


def complete_columns(ctx: Any, incomplete: str) -> list[str]:
    """The same for the last one of a list with commas between."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_column(ctx, last)]


def _offered(names: Iterator[str], incomplete: str) -> list[str]:
    # The shell is in the middle of a line: what cannot be read or seen is not offered, and no message disturbs it.
    logging.disable()
    try:
        return sorted({name for name in names if name.startswith(incomplete) and make_visible(name) == name})
    except Exception:  # noqa: BLE001 - as above
        return []


def _columns_of(table: str, conf: dict[str, str]) -> Iterator[str]:
    from metastore.path_names import is_location  # noqa: PLC0415 - as above
    from metastore.reading.discovery import discover  # noqa: PLC0415 - slow to import

    places = [discover(table)] if is_location(table) else [place for name, place in _tables(conf) if name == table]
    for place in places:
        snapshots = place.manifest.snapshots if place.manifest else ()
        yield from (column.name for snapshot in snapshots[-1:] for column in snapshot.columns)


def _tables(conf: dict[str, str]) -> Iterator[tuple[str, Discovery]]:
    from metastore import configuration  # noqa: PLC0415 - slow to import
    from metastore.reading.discovery import (  # noqa: PLC0415 - spares every other use its time
        discover,
        discover_all,
    )
    from metastore.reading.folder import Folder  # noqa: PLC0415 - as above

    root = conf.get("spark.metastore.store") or configuration.get("spark.metastore.store")
    places = discover_all(Folder(root)) if root else []
    folders = (folder for warehouse in _warehouses(conf) for depth in _DEPTHS for folder in warehouse.glob(depth))
    analyzed = (folder for folder in islice(folders, _MOST) if (folder / "_metastore").is_dir())
    for place in [*places, *(discover(str(folder)) for folder in analyzed)]:
        if place.manifest is not None and place.manifest.table.name:
            yield place.manifest.table.name, place


def _warehouses(conf: dict[str, str]) -> list[Path]:
    from pathlib import Path  # noqa: PLC0415 - as above

    from metastore.spark.session import read_spark_defaults  # noqa: PLC0415 - as above
    from metastore.store.location import local_path  # noqa: PLC0415 - as above

    known = {"spark.sql.warehouse.dir": "spark-warehouse", **read_spark_defaults(), **conf}
    named = [text for key, text in known.items() if key.endswith((".warehouse", ".warehouse.dir"))]
    return [Path(path) for path in map(local_path, named) if path]


def _conf(ctx: Any) -> dict[str, str]:
    pairs = (text.partition("=") for text in ctx.params.get("conf") or ())
    return {key.strip(): value.strip() for key, _, value in pairs}
