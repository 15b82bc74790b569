"""The shim reads what Python wrote: every field, every type, every extreme value; and notices every damage."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from py4j.protocol import Py4JJavaError

from format import golden
from metastore.contract import read_contract
from pruning.scala import items, module, no_limits, open_store, option, pairs

pytestmark = pytest.mark.spark

TEXTS = {"frequencies"}
DOUBLES = {"distinct_error", "sum", "mean", "m2", "avg_len"}


@pytest.fixture
def store(spark, tmp_path):
    module(spark, "org.metastore.spark.statistics.cache.StatisticsCache").clear()
    golden.write(tmp_path)
    return open_store(spark, tmp_path)


def plain(value):
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return value if isinstance(value, (bool, str)) else repr(value)


def row_of(row):
    """A row of the reader, as `golden.expected` writes it."""
    names = ["nulls", "nans", "distinct", "sum_exact", *sorted(DOUBLES), "trues", "compressed_bytes"]
    names += ["uncompressed_bytes", *sorted(TEXTS), "frequencies_floor", "file", "rows"]
    names += [
        statistic["name"] for statistic in read_contract("statistics") if statistic["merge"] in ("sum", "min", "max")
    ]
    statistics = {name: option(row.get(name)) for name in names}
    statistics |= {"lo": option(row.lo()), "hi": option(row.hi())}
    answer = {name: plain(value) for name, value in statistics.items() if value is not None}
    answer["column"] = plain(row.column())
    answer["lo_exact"], answer["hi_exact"] = row.loExact(), row.hiExact()
    if percentiles := items(row.percentiles()):
        answer["percentiles"] = [plain(value) for value in percentiles]
    if extra := pairs(row.extra()):
        answer["extra"] = {key: plain(value) for key, value in extra.items()}
    return answer


def expected_row(row):
    answer = {re.sub(r"_(long|double|binary)$", "", name): value for name, value in row.items() if value is not None}
    answer |= {name: answer.get(name, False) for name in ("lo_exact", "hi_exact")}
    if "sum_exact" in answer:
        answer["sum_exact"] = repr(Decimal(answer["sum_exact"]))
    return answer


def test_every_field_of_every_row_is_read(spark, store):
    block = store.manifest().get().blocks().apply(0)
    rows = [row_of(row) for row in items(store.summary(block, no_limits(spark), no_limits(spark)))]
    assert rows == [expected_row(row) for row in golden.expected()]


def test_the_manifest_is_read(store, tmp_path):
    manifest = store.manifest().get()
    body = json.loads(next((tmp_path / "log").iterdir()).read_bytes().partition(b"\n")[0])
    assert (manifest.sequence(), manifest.table().uuid(), manifest.writer()) == (1, golden.TABLE.uuid, "golden")
    columns = manifest.blocks().apply(0).columns()
    for entry, column in zip(items(columns), golden.columns(), strict=True):
        encoding = option(entry.encoding())
        read = (entry.key(), tuple(items(entry.path())), entry.dataType(), encoding and encoding.name())
        assert read == (column.key, column.path, column.type, column.encoding)
        assert option(entry.collation()) == column.collation
    snapshot = manifest.latest().get()
    assert snapshot.id() == body["snapshots"][0]["id"]
    counts = [option(count) for count in (snapshot.rows(), snapshot.physicalRows(), snapshot.liveSizeBytes())]
    body_counts = [body["snapshots"][0][name] for name in ("rows", "physical_rows", "live_size_bytes")]
    assert (counts, snapshot.sizeBytes()) == (body_counts, golden.LONG_MAX)
    assert counts[:2] == [37, 40]


def test_files_and_table_level_are_read(store):
    manifest = store.manifest().get()
    files = items(store.dataFiles(manifest.blocks().apply(0)))
    assert [file.path() for file in files] == golden.PATHS
    assert [file.size() for file in files] == [golden.LONG_MAX, 0, 1, 2**40]
    assert [option(file.rows()) for file in files] == [golden.LONG_MAX, 1000, 7, None]
    assert [option(file.modified()) for file in files] == [golden.LONG_MIN, 1_700_000_000_123, None, None]
    assert pairs(files[0].partition()) == {"p": "a b", "": ""}
    snapshot = manifest.latest().get()
    live = items(store.tableFiles(snapshot))
    assert [option(file.deletedRows()) for file in live] == [3, None, None, None]
    summary = [row_of(row) for row in items(store.tableSummary(snapshot))]
    assert [{**row, "file": "0"} for row in summary] == [expected_row(r) for r in golden.expected() if r["file"] == "0"]


def test_a_store_that_was_never_written_has_no_manifest(spark, tmp_path):
    assert open_store(spark, tmp_path / "nothing").manifest().isEmpty()


def test_a_torn_manifest_leaves_the_one_before(store, tmp_path):
    (tmp_path / "log" / f"{2:020}.json").write_bytes(b'{"format": 1')
    assert store.manifest().get().sequence() == 1


def test_a_manifest_that_needs_more_is_refused(spark, tmp_path):
    newer = replace(golden.write(tmp_path), requires=("time-machine",), sequence=2)
    (tmp_path / "log" / f"{2:020}.json").write_bytes(newer.to_bytes())
    with pytest.raises(Py4JJavaError, match="METASTORE_FORMAT_TOO_NEW"):
        open_store(spark, tmp_path).manifest()


@pytest.mark.parametrize("share", [0.0001, 0.3, 0.6, 0.9, 0.99999])
def test_no_changed_byte_is_believed(spark, store, tmp_path, share):
    block = store.manifest().get().blocks().apply(0)
    path = tmp_path / "objects" / block.summary().apply(0).ref().name()
    data = bytearray(path.read_bytes())
    data[max(4, int(len(data) * share))] ^= 1  # the first four bytes, a magic number, decide nothing
    path.write_bytes(data)
    with pytest.raises(Py4JJavaError, match="METASTORE_DAMAGED_OBJECT"):
        open_store(spark, tmp_path).summary(block, no_limits(spark), no_limits(spark))


def test_a_missing_or_short_object_is_damage(spark, store, tmp_path):
    block = store.manifest().get().blocks().apply(0)
    path = tmp_path / "objects" / block.files().name()
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(Py4JJavaError, match="METASTORE_DAMAGED_OBJECT"):
        store.dataFiles(block)
    path.unlink()
    with pytest.raises(Py4JJavaError, match="METASTORE_DAMAGED_OBJECT"):
        open_store(spark, tmp_path).dataFiles(block)
