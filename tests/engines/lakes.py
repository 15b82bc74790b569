"""Tables that pyiceberg and deltalake write, with true statistics of the files that they have then."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from metastore.format.manifest import TableIdentity
from planner.written import DataFile, Written, described

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table


def rows(start: int, end: int) -> pa.Table:
    """Rows with these numbers."""
    numbers = list(range(start, end))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "country": [f"C{number // 10}" for number in numbers],
            "amount": [number / 4 for number in numbers],
            "part": [f"p {number // 20}%" for number in numbers],
        }
    )


def make_iceberg(folder: Path, files: int = 5) -> Table:
    """A table of one catalog, a data file for ten rows."""
    folder.mkdir(parents=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.sales", rows(0, 1).schema)
    for number in range(files):
        table.append(rows(number * 10, number * 10 + 10))
    return table


def describe_iceberg(table: Table) -> Written:
    """Describe the table's data files with true statistics."""
    identity = TableIdentity(
        "iceberg", str(table.metadata.table_uuid), table.location().replace("file://", "file:"), "db.sales"
    )
    tasks = [task.file for task in table.scan().plan_files()]
    files = [DataFile(path=task.file_path, size=task.file_size_in_bytes, rows=task.record_count) for task in tasks]
    return Written(identity, [described(identity, file) for file in files])


def make_delta(folder: Path, files: int = 5) -> DeltaTable:
    """A table, partitioned by names that are written with percent signs."""
    for number in range(files):
        write_deltalake(folder, rows(number * 10, number * 10 + 10), mode="append", partition_by=["part"])
    return DeltaTable(folder)


def describe_delta(table: DeltaTable) -> Written:
    """Describe the columns of the table's data files with true statistics."""
    root = "file:" + table.table_uri.removeprefix("file://").rstrip("/")
    identity = TableIdentity("delta", str(table.metadata().id), root, "sales")
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = [
        DataFile(path=unquote(action["path"]), size=action["size_bytes"], rows=action["num_records"])
        for action in actions
    ]
    return Written(identity, [described(identity, file) for file in files])
