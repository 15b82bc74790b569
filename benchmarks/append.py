"""Table level after a file was appended, read from the store: with the groups that are kept, against from scratch.

Every data file has detail objects of its own, as large ones do. Nothing of Spark: the files have been analyzed, and all
lists are reduced in the driver. The files' statistics are drawn from a pool.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from common import median, report, seconds

from metastore.adapters.table_facts import TableFacts
from metastore.format.block_writer import BlockContent, write_block
from metastore.format.data_files import DataFile
from metastore.format.manifest import Block, TableIdentity
from metastore.format.objects import object_kind
from metastore.format.table_column import Column
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.statistic_rows import block_rows
from metastore.pipeline.commit import ManifestChange
from metastore.store import Store
from metastore.store.block_files import read_block_files
from metastore.store.coverage import Coverage
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions

if TYPE_CHECKING:
    from metastore.kernel.column_statistics import ColumnStatistics

IDENTITY = TableIdentity("iceberg", "7d2a3a3e-0000-4000-8000-000000000001", "/w/t", "db.t")
KINDS = {"id": "bigint", "quantity": "int", "customer": "int", "day": "int", "price": "double", "shop": "string"}
ENCODINGS = {"bigint": "long", "int": "long", "double": "double", "string": "binary"}
COLUMNS = tuple(
    Column(key=str(i), path=(name,), type=kind, encoding=ENCODINGS[kind])
    for i, (name, kind) in enumerate(KINDS.items())
)
DETAILS = ("frequencies", "histograms", "sketches")
ROWS, POOL, BYTES = 20_000, 40, 50 << 20
READ: Counter[str] = Counter()


class Reads(Store):
    """A store that counts the objects that are read as a whole."""

    def read_bytes(self, name: str, *arguments: object) -> bytes:
        """The bytes of an object."""
        READ[object_kind(name)] += 1
        return super().read_bytes(name, *arguments)


class Table:
    """A table that grows, and what ANALYZE makes of it."""

    def __init__(self, folder: str) -> None:
        """Begin with no files."""
        self.random = np.random.default_rng(1)
        self.store = Reads.open(folder, writable=True)
        self.files: list[DataFile] = []
        self.blocks: list[Block] = []
        self.pool = [self._statistics() for _ in range(POOL)]

    def append(self, number: int) -> None:
        """Add files that were analyzed, each by a task of its own."""
        for random_turn in self.random.integers(0, 1 << 60, number):
            file = DataFile(path=f"/w/t/data/{random_turn:016x}.parquet", size=BYTES, rows=ROWS, format="parquet")
            file_statistics = self.pool[self.random.integers(POOL)]
            rows = [(ordinal, 0, column_statistics) for ordinal, column_statistics in enumerate(file_statistics)]
            content = BlockContent("full", COLUMNS, (file,), block_rows(rows))
            self.blocks.append(write_block(self.store.put, content, IDENTITY, {}))
            self.files.append(file)

    def analyze(self, *, keep: bool) -> None:
        """Make the table level.

        Args:
            keep: Whether groups are taken from the store, and all is committed.
        """
        manifest = self.store.read()
        facts = TableFacts(
            format="iceberg",
            uuid=IDENTITY.uuid,
            location="/w/t",
            root="/w/t",
            name="db.t",
            identifier="db.t",
            snapshot=str(len(self.files)),
            columns=COLUMNS,
            files=tuple(self.files),
            defaults={},
            absent_is_null=True,
            local=True,
            snapshot_sql="db.t",
        )
        blocks = manifest.blocks if manifest else ()
        coverage = Coverage(read_block_files(self.store, [*blocks, *self.blocks]), facts.files)
        nodes = manifest.nodes if manifest and keep else ()
        level = write_table_level(self.store, facts, coverage, TableLevelOptions(), nodes=nodes)
        if keep:
            change = ManifestChange(
                identity=IDENTITY,
                blocks=tuple(self.blocks),
                replacements={},
                snapshot=level.snapshot,
                settings={},
                nodes=level.nodes,
            )
            self.store.commit(IDENTITY, change)
            self.blocks = []

    def _statistics(self) -> list[ColumnStatistics]:
        random = self.random
        arrays = {
            "id": pa.array(random.integers(0, 1 << 60, ROWS)),
            "quantity": pa.array(random.integers(1, 51, ROWS), pa.int32()),
            "customer": pa.array(random.integers(0, 10_000, ROWS), pa.int32()),
            "day": pa.array(np.arange(ROWS) // 5_000 + random.integers(0, 3_000), pa.int32()),
            "price": pa.array(np.round(random.gamma(2, 50, ROWS), 2)),
            "shop": pa.array([f"shop {n:05}" for n in np.minimum(random.zipf(1.3, ROWS), 20_000)]),
        }
        results = []
        for column in COLUMNS:
            kernel = ColumnKernel(column)
            kernel.add(arrays[column.name])
            results.append(kernel.finish(ROWS))
        return results


def main() -> None:
    """Measures and reports."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=1_000)
    arguments.add_argument("--runs", type=int, default=3)
    options = arguments.parse_args()
    times: dict[bool, list[float]] = {True: [], False: []}
    reads: dict[bool, list[int]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        table = Table(folder)
        table.append(options.files)
        first, first_reads = seconds(lambda: table.analyze(keep=True)), sum(READ[kind] for kind in DETAILS)
        for _ in range(options.runs):
            table.append(1)
            for keep in (False, True):
                READ.clear()
                times[keep].append(seconds(lambda keep=keep: table.analyze(keep=keep)))
                reads[keep].append(sum(READ[kind] for kind in DETAILS))
    rows = [
        {"measure": "the first table level", "seconds": first, "detail objects read": first_reads},
        {
            "measure": "one file more, from scratch",
            "seconds": median(times[False]),
            "detail objects read": median(reads[False]),
        },
        {
            "measure": "one file more, by groups",
            "seconds": median(times[True]),
            "detail objects read": median(reads[True]),
        },
    ]
    report("append", rows, files=options.files, columns=len(COLUMNS), rows_of_a_file=ROWS)


if __name__ == "__main__":
    main()
