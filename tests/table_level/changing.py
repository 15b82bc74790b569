"""Tables of which data files come and go, analyzed without Spark: what is merged of what changed, and from scratch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from kernel.samples import column
from metastore.adapters.table_facts import TableFacts
from metastore.format.block_writer import BlockContent, write_block
from metastore.format.data_files import DataFile
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.statistic_rows import block_rows
from metastore.pipeline.commit import ManifestChange
from metastore.store import Store
from metastore.store.block_files import read_block_files
from metastore.store.coverage import Coverage
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions
from table_level.analyzed_tables import IDENTITY

ROWS = 40
COLUMNS = (column("bigint", "n", "1"), column("string", "t", "2"), column("double", "d", "3"))
KEYS = [of.key for of in COLUMNS]
NODES = ("table-nodes", "table-histogram-nodes", "table-list-nodes")


class Table:
    """Data files that come and go, and what ANALYZE makes of them."""

    def __init__(self, folder, seed, *, cut=False, options=TableLevelOptions(), jobs=None):  # noqa: B008 - nothing changes it
        self.options, self.jobs, self.cut = options, jobs, cut
        self.columns = COLUMNS
        self.store = Store.open(str(folder), writable=True)
        self.random = np.random.default_rng(seed)
        self.files, self.snapshots, self.settings = [], 0, {}
        self.pool = [self._statistics() for _ in range(30)]

    def append(self, count):
        """Add data files; give the blocks that tasks of 50 files would write."""
        folder = f"/w/t/data/{self.random.integers(1 << 40):x}"
        paths = [f"{folder}/{i:05}.parquet" for i in range(count)]
        new = [DataFile(path=path, size=1 << 20, rows=ROWS, format="parquet") for path in paths]
        self.files += new
        return [self.block(new[start : start + 50]) for start in range(0, count, 50)]

    def delete(self, count):
        for _ in range(count):
            del self.files[self.random.integers(len(self.files))]

    def block(self, files, columns=None):
        columns = columns or self.columns
        statistics = [
            (ordinal, file, self.pool[drawn][KEYS.index(of.key)])
            for file, drawn in enumerate(self.random.integers(len(self.pool), size=len(files)))
            for ordinal, of in enumerate(columns)
        ]
        content = BlockContent("full", columns, tuple(files), block_rows(statistics))
        return write_block(self.store.put, content, IDENTITY, self.settings)

    def _statistics(self):
        numbers = self.random.integers(0, 100_000, ROWS)
        arrays = (
            pa.array(numbers, pa.int64(), mask=numbers % 7 == 0),
            pa.array([f"t{n % 500:03}" for n in numbers]),
            pa.array(np.where(numbers % 11 == 0, np.nan, numbers / 3)),
        )
        statistics = []
        for of, array in zip(COLUMNS, arrays, strict=True):
            kernel = ColumnKernel(of)
            kernel.add(array)
            column_statistics = kernel.finish(ROWS)
            if self.cut and self.random.random() < 0.5:
                column_statistics = column_statistics.with_value_counts(column_statistics.values.keep_most_frequent(8))
            statistics.append(column_statistics)
        return statistics

    def analyze(self, blocks=(), *, nodes=None):
        """Make the table level, with the partial merges that are committed or with others."""
        manifest = self.store.read()
        base = manifest.blocks if manifest else ()
        facts = TableFacts(
            format="iceberg",
            uuid=IDENTITY.uuid,
            location=IDENTITY.location,
            root=IDENTITY.location,
            name="db.t",
            identifier="db.t",
            snapshot=str(self.snapshots),
            columns=self.columns,
            files=tuple(self.files),
            defaults={},
            absent_is_null=True,
            local=True,
            snapshot_sql="db.t",
        )
        coverage = Coverage(read_block_files(self.store, [*base, *blocks]), facts.files)
        earlier_nodes = (manifest.nodes if manifest else ()) if nodes is None else nodes
        jobs = self.jobs and replace(self.jobs, files={file.path: file for file in self.files})
        level = write_table_level(self.store, facts, coverage, self.options, jobs=jobs, nodes=earlier_nodes)
        return facts, coverage, level

    def commit(self, blocks=()):
        self.snapshots += 1
        level = self.analyze(blocks)[2]
        change = ManifestChange(
            identity=IDENTITY,
            blocks=tuple(blocks),
            replacements={},
            snapshot=level.snapshot,
            settings={},
            nodes=level.nodes,
        )
        self.store.commit(IDENTITY, change)
        return level


def rows_of(table, level):
    snapshot = level.snapshot
    objects = (
        snapshot.summary,
        snapshot.sketches,
        snapshot.histograms,
        *(entry.object for entry in snapshot.frequencies),
    )
    return [repr(table.store.get(ref).to_pylist()) for ref in objects]  # NaN is not equal to itself


def nodes_of(level, kind="table-nodes"):
    return [ref for ref in level.nodes if ref.kind == kind]
