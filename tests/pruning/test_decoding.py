"""The planner's own decoders, on integers of every width, byte strings and doubles, nulls among them."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from metastore.format.manifest import Block, Manifest, SummaryRef, TableIdentity, describe_block
from metastore.format.object_schemas import FILES, SUMMARY
from metastore.format.objects import BLOCK_KEY
from metastore.format.table_column import Column, encoding_of
from metastore.jvm_session import find_shim_package
from metastore.store import Store
from pruning.scala import module

pytestmark = pytest.mark.spark
FILES_IN_BLOCK = 2_500  # more than a page of Parquet's packed integers, and no multiple of one
TABLE = TableIdentity("iceberg", "6d0f2f2e-54f3-4d6e-9b0a-0a6a6a0f9f11", "file:/decoding", "decoding")


def integers(width: int, numbers: np.random.Generator) -> list[int | None]:
    """Values whose differences take so many bits; runs, jumps and nulls among them."""
    high = (1 << max(0, width - 1)) - 1
    values = numbers.integers(-high - (width > 0), high, FILES_IN_BLOCK, endpoint=True).tolist()
    values[700:1100] = [values[700]] * 400
    return [None if numbers.random() < 0.1 else value for value in values]


def columns_of(kind: str) -> list[list[object]]:
    numbers = np.random.default_rng(7)
    if kind == "bigint":
        return [integers(width, numbers) for width in (0, 1, 7, 8, 31, 32, 33, 56, 57, 58, 63, 64)]
    if kind == "double":
        doubles = [*numbers.normal(size=FILES_IN_BLOCK - 4).tolist(), 0.0, 5e-324, float("inf"), -float("inf")]
        return [doubles, [None if i % 3 else value for i, value in enumerate(doubles)], [None] * FILES_IN_BLOCK]
    texts = [b"", b"\0", b"prefix" * 5, *(b"prefix%d" % (i // 3) for i in range(FILES_IN_BLOCK - 4)), b"\xff" * 64]
    return [texts, [None if i % 7 == 0 else value for i, value in enumerate(texts)]]


def build(path, kind: str, columns: list[list[object]]) -> None:
    store = Store.open(str(path), writable=True)
    schema = tuple(
        Column(key=str(i), path=(f"c{i}",), type=kind, encoding=encoding_of(kind)) for i in range(len(columns))
    )
    count = FILES_IN_BLOCK
    summary = []
    for i, values in enumerate(columns):
        statistics = {"column": [i] * count, "file": range(count), "rows": [9] * count, "nulls": [1] * count}
        exact = [value is not None and file % 2 == 0 for file, value in enumerate(values)]
        statistics |= {"nans": [0] * count, f"lo_{schema[i].encoding}": values, "lo_exact": exact}
        rows = pa.table([pa.array(statistics.get(f.name, [None] * count), f.type) for f in SUMMARY], schema=SUMMARY)
        summary.append(SummaryRef(store.put("summary", rows, [count]), (i,)))
    statistics = {
        "file": range(count),
        "path": [f"f{i}" for i in range(count)],
        "size": [1] * count,
        "rows": [9] * count,
    }
    files = pa.table([pa.array(statistics.get(f.name, [None] * count), f.type) for f in FILES], schema=FILES)
    footer = describe_block("b", computed="full", columns=schema, objects=tuple(summary), table=TABLE, settings={})
    ref = store.put("files", files, [count], {BLOCK_KEY: footer})
    store.commit(
        TABLE,
        lambda _: Manifest(
            table=TABLE, blocks=(Block(id="b", computed="full", columns=schema, files=ref, summary=tuple(summary)),)
        ),
    )


def ordered(value: float) -> int:
    """The key of a double in the order of integers."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF


@pytest.mark.parametrize("kind", ["bigint", "double", "string"])
def test_bounds_come_back_as_they_were_written(spark, tmp_path, kind):
    columns = columns_of(kind)
    build(tmp_path, kind, columns)
    ddl = ", ".join(f"c{i} {kind}" for i in range(len(columns)))
    probes = find_shim_package(spark).pruning.PruningProbe
    probe = probes.open(spark._jsparkSession, ddl, str(tmp_path), TABLE.uuid)
    order = [int(path[1:]) for path in probe.paths()]
    arrays = spark._jvm.java.util.Arrays
    data_type = module(spark, "org.apache.spark.sql.types.DataType").fromDDL(kind)
    for i, values in enumerate(columns):
        bounds = probe.statistics().column(str(i), data_type).toOption().get().bounds()
        if kind == "string":
            decoded = [None if v is None else bytes(v) for v in bounds.lo()]
            missing = None
        else:
            decoded = [int(text) for text in arrays.toString(bounds.lo())[1:-1].split(",")]
            missing = -(2**63)
        expected = [ordered(v) if kind == "double" and v is not None else v for v in (values[file] for file in order)]
        assert decoded == [missing if value is None else value for value in expected]
        exact = [bounds.loExact(at) for at in range(60)]
        assert exact == [values[file] is not None and file % 2 == 0 for file in order[:60]]
