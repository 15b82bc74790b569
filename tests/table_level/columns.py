"""Columns of many types and distributions, analyzed in as many data files as a test likes, without Spark."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import metastore
from kernel.samples import ARROW, column
from metastore.adapters.table_facts import TableFacts
from metastore.format.data_files import DataFile
from metastore.format.manifest import FULL, Manifest
from metastore.pipeline.block_task import BlockDestination, BlockTask, run_block_task
from metastore.pipeline.plan_inputs import BLOCK_SETTINGS
from metastore.spark_jobs.task_store import TaskStore
from metastore.store import Store
from metastore.store.block_files import read_block_files
from metastore.store.coverage import Coverage
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions
from table_level.analyzed_tables import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from metastore.reading.table_answers import Statistics

    Make = Callable[[np.random.Generator, int], Any]

_STATES = np.array(["lost", "open", "returned", "shipped", "waiting"], object)
_EPOCH = dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)


def _scaled(values: np.ndarray, scale: int = 2) -> list[decimal.Decimal]:
    return [decimal.Decimal(int(value)).scaleb(-scale) for value in values]


def _days(first: int, values: np.ndarray) -> list[dt.date]:
    return [dt.date(first, 1, 1) + dt.timedelta(days=int(value)) for value in values]


def _wide(values: np.ndarray) -> list[decimal.Decimal]:
    return [decimal.Decimal(int(value) * 10**18 + 7).scaleb(-6) for value in values]


def _texts(values: np.ndarray, form: str = "key-%08d") -> list[str]:
    return [form % value for value in values]


def _with_nulls(share: float, make: Make) -> Make:
    def make_with_nulls(random: np.random.Generator, rows: int) -> list[Any]:
        gone = random.random(rows) < share
        return [None if lost else value for lost, value in zip(gone, make(random, rows), strict=True)]

    return make_with_nulls


def _zipf(random: np.random.Generator, rows: int, power: float = 1.3) -> np.ndarray:
    return np.minimum(random.zipf(power, rows), 10**9)


def _moments(random: np.random.Generator, rows: int) -> list[dt.datetime]:
    return [_EPOCH + dt.timedelta(seconds=int(value)) for value in random.integers(0, 10**8, rows)]


COLUMNS: dict[str, tuple[str, Make]] = {
    "one value": ("int", lambda _, n: np.full(n, 7)),
    "all null": ("int", lambda _, n: [None] * n),
    "boolean, a tenth": ("boolean", lambda r, n: r.random(n) < 0.1),
    "boolean, even": ("boolean", lambda r, n: r.random(n) < 0.5),
    "boolean, nulls": ("boolean", _with_nulls(0.3, lambda r, n: (r.random(n) < 0.02).tolist())),
    "tinyint": ("tinyint", lambda r, n: r.integers(-128, 128, n)),
    "smallint, normal": ("smallint", lambda r, n: r.normal(0, 900, n).astype(np.int64)),
    "int, five": ("int", lambda r, n: r.choice([1, 2, 3, 50, 1000], n, p=[0.05, 0.2, 0.05, 0.6, 0.1])),
    "int, 200": ("int", lambda r, n: r.integers(0, 200, n) * 3),
    "int, 300": ("int", lambda r, n: r.integers(0, 300, n)),
    "int, 5000": ("int", lambda r, n: r.integers(0, 5000, n)),
    "int, uniform": ("int", lambda r, n: r.integers(-(10**9), 10**9, n)),
    "int, zipf": ("int", _zipf),
    "bigint, zipf 2": ("bigint", lambda r, n: _zipf(r, n, 2.0)),
    "bigint, random": ("bigint", lambda r, n: r.integers(-(1 << 62), 1 << 62, n)),
    "bigint, geometric": ("bigint", lambda r, n: r.geometric(0.001, n)),
    "bigint, outlier": ("bigint", lambda r, n: np.where(r.random(n) < 0.001, 10**15, r.integers(0, 50, n))),
    "bigint, nulls": ("bigint", _with_nulls(0.9, lambda r, n: r.integers(0, 10**6, n).tolist())),
    "double, uniform": ("double", lambda r, n: r.random(n)),
    "double, normal": ("double", lambda r, n: r.normal(size=n)),
    "double, log-normal": ("double", lambda r, n: r.lognormal(3, 1.5, n)),
    "double, pareto": ("double", lambda r, n: r.pareto(1.0, n)),
    "double, few": ("double", lambda r, n: r.choice([0.5, 1.5, 9.25], n, p=[0.9, 0.09, 0.01])),
    "double, NaN": ("double", lambda r, n: np.where(r.random(n) < 0.2, np.nan, r.normal(size=n))),
    "double, heavy zero": ("double", lambda r, n: np.where(r.random(n) < 0.7, 0.0, r.exponential(size=n))),
    "double, two humps": ("double", lambda r, n: np.where(r.random(n) < 0.5, r.normal(-9, 1, n), r.normal(9, 1, n))),
    "float, normal": ("float", lambda r, n: r.normal(size=n).astype(np.float32)),
    "decimal, prices": ("decimal(7,2)", lambda r, n: _scaled(r.lognormal(6, 1, n).clip(0, 99999))),
    "decimal, few": ("decimal(7,2)", lambda r, n: _scaled(r.integers(0, 11, n))),
    "decimal, 18 digits": ("decimal(18,4)", lambda r, n: _scaled(r.integers(0, 10**15, n), 4)),
    "decimal, wide": ("decimal(38,6)", lambda r, n: _wide(r.normal(0, 10**7, n).astype(np.int64))),
    "decimal, wide and few": ("decimal(38,6)", lambda r, n: _wide(r.integers(0, 30, n))),
    "date, a year": ("date", lambda r, n: _days(2024, r.integers(0, 366, n))),
    "date, seven years": ("date", lambda r, n: _days(1992, r.integers(0, 2556, n))),
    "timestamp": ("timestamp", _moments),
    "timestamp_ntz": ("timestamp_ntz", lambda r, n: [moment.replace(tzinfo=None) for moment in _moments(r, n)]),
    "string, five": ("string", lambda r, n: r.choice(_STATES, n, p=[0.05, 0.1, 0.15, 0.65, 0.05]).tolist()),
    "string, 100": ("string", lambda r, n: _texts(np.minimum(r.zipf(1.5, n), 100), "city %d")),
    "string, 3000": ("string", lambda r, n: _texts(r.integers(0, 3000, n))),
    "string, unique": ("string", lambda r, n: _texts(r.integers(0, 10**8, n), "%032x")),
    "string, zipf": ("string", lambda r, n: _texts(_zipf(r, n), "word%d")),
    "string, long and few": ("string", lambda r, n: _texts(r.integers(0, 40, n), "the same beginning, " * 9 + "%d")),
    "string, nulls": ("string", _with_nulls(0.5, lambda r, n: _texts(r.integers(0, 9, n), "n%d"))),
    "binary": ("binary", lambda r, n: [r.bytes(6) for _ in range(n)]),
    "binary, few": ("binary", lambda r, n: [bytes([v, 255 - v]) for v in r.integers(0, 60, n).tolist()]),
}  # fmt: skip
"""Name to Spark type and what makes the values of a data file."""

TAILS = (0.0001, 0.001, 0.999, 0.9999)
PROBABILITIES = (0.0, *TAILS[:2], 0.01, 0.05, *(i / 20 for i in range(2, 20)), 0.99, *TAILS[2:], 1.0)


def data(
    files: int, rows: int, names: list[str] | None = None, *, is_sorted: bool = False, seed: int = 5
) -> list[pa.Table]:
    """A table for each data file.

    Args:
        files: How many.
        rows: Of each.
        names: Which columns; all if None.
        is_sorted: Whether values go on from file to file in order.
        seed: Of all randomness.
    """
    random = np.random.default_rng(seed)
    arrays = {}
    for name in names or COLUMNS:
        kind, make = COLUMNS[name]
        values = pa.array(make(random, files * rows), ARROW[kind], from_pandas=False)
        arrays[name] = values.take(pa.compute.sort_indices(values)) if is_sorted else values
    all_rows = pa.table(arrays)
    return [all_rows.slice(number * rows, rows) for number in range(files)]


def analyze(folder: Path, tables: list[pa.Table], kinds: dict[str, str], **options: Any) -> Statistics:
    """Write data files, analyze them as a task and the driver do, and open what they stored.

    Args:
        folder: Where everything goes.
        tables: Of each data file.
        kinds: The Spark type of each column.
        options: Of the table level.
    """
    (folder / "data").mkdir(parents=True)
    columns = tuple(column(kind, name, str(ordinal)) for ordinal, (name, kind) in enumerate(kinds.items()))
    ids = {column_.key: ordinal for ordinal, column_ in enumerate(columns)}
    files = []
    for number, rows in enumerate(tables):
        path = folder / "data" / f"{number:05d}.parquet"
        fields = [rows.schema.field(i).with_metadata({"PARQUET:field_id": str(i)}) for i in range(rows.num_columns)]
        pq.write_table(pa.table(rows.columns, schema=pa.schema(fields)), path)
        files.append(DataFile(path=str(path), size=path.stat().st_size, rows=rows.num_rows, format="parquet"))
    settings = {
        **BLOCK_SETTINGS,
        "histogram_bins": 1000,
        "frequencies_top": 1000,
    }
    result = run_block_task(
        BlockDestination(store=TaskStore(str(folder)), table=IDENTITY, settings=settings, budget=1 << 30),
        BlockTask(depth=FULL, columns=columns, files=tuple(files), defaults={}, absent_is_null=True, field_ids=ids),
    )
    assert not result.unread, result.unread[:1]
    store = Store.open(str(folder), writable=True)
    facts = TableFacts(
        format="iceberg",
        uuid=IDENTITY.uuid,
        location=IDENTITY.location,
        root=IDENTITY.location,
        name="db.t",
        identifier="db.t",
        snapshot="1",
        columns=columns,
        files=tuple(files),
        defaults={},
        absent_is_null=True,
        local=True,
        snapshot_sql="db.t",
    )
    level = write_table_level(
        store, facts, Coverage(read_block_files(store, [result.block]), tuple(files)), TableLevelOptions(**options)
    )
    manifest = Manifest(table=IDENTITY, blocks=(result.block,), snapshots=(level.snapshot,), nodes=level.nodes)
    store.commit(IDENTITY, lambda _: manifest)
    return metastore.open(str(folder))


def stored_size(folder: Path) -> int:
    """Bytes of all objects that say something of data files."""
    names = ("files-", "summary-", "sketches-", "frequencies-", "histograms-")
    return sum(path.stat().st_size for path in (folder / "objects").iterdir() if path.name.startswith(names))
