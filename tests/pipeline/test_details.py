"""Detail objects of data files as tasks write them: order, row groups, names in `files`, and their size."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernel.samples import columns, table
from metastore.format.data_files import DataFile
from metastore.format.manifest import TableIdentity
from metastore.format.objects import decode_object, identify_object
from metastore.format.table_column import Column, encoding_of
from metastore.kernel.budget import Allowance, choose_allowance, fit_to_file_size
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.detail_limits import DetailLimits
from metastore.kernel.parquet_file import analyze_parquet
from metastore.kernel.parquet_schema import FileColumn
from metastore.pipeline.block_task import BlockBuilder, BlockDestination
from metastore.spark_jobs.task_store import TaskStore

TABLE = TableIdentity("iceberg", "u", "/t", "t")
SETTINGS = {"histogram_bins": 50, "frequencies_top": 20}


@pytest.fixture
def written(tmp_path):
    """Two data files of every type and their block: tables of objects by kind, the files' rows."""
    destination = BlockDestination(store=TaskStore(str(tmp_path)), table=TABLE, settings=SETTINGS, budget=1 << 30)
    builder = BlockBuilder(
        destination=destination, depth="full", columns=tuple(file_column.column for file_column in columns())
    )
    statistics = []
    for name in "ab":
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table(3_000, ord(name)), path)
        file = DataFile(path=str(path), size=400 << 20, rows=3_000, format="parquet")
        statistics.append(analyze_parquet(str(path), columns(), detail=destination.detail(file)).columns)
        builder.add(file, enumerate(statistics[-1]))
    result = builder.finish()
    objects = {}
    for object_path in (tmp_path / "objects").iterdir():
        ref, _ = identify_object(object_path.name, object_path.read_bytes())
        objects.setdefault(ref.kind, []).append((ref, object_path.read_bytes()))
    assert result.objects == sum(map(len, objects.values()))
    return statistics, objects


def test_files_name_them(written):
    _, objects = written
    (files,) = (decode_object(*stored_object).to_pylist() for stored_object in objects["files"])
    for kind in ("sketches", "frequencies", "histograms"):
        ((ref, _),) = objects[kind]
        for number, row in enumerate(files):
            assert (row[f"{kind}_name"], row[f"{kind}_length"]) == (ref.name, ref.length)
            assert (row[f"{kind}_sha256"], row[f"{kind}_footer_sha256"]) == (ref.sha256, ref.footer_sha256)
            assert row[f"{kind}_file"] == number


def test_the_ten_most_frequent_values_of_each_column_stand_in_the_first_row_group(written):
    statistics, objects = written
    ((ref, data),) = objects["frequencies"]
    rows = decode_object(ref, data).to_pylist()
    heads = pq.read_metadata(pa.BufferReader(data)).row_group(0).num_rows
    each = Counter((row["column"], row["file"]) for row in rows[:heads])
    assert max(each.values()) == 10
    for part in (rows[:heads], rows[heads:]):
        positions = [(row["column"], row["file"]) for row in part]
        assert positions == sorted(positions)
    for (ordinal, file), number in each.items():
        column_statistics = statistics[file][ordinal]
        ranked = column_statistics.values.sort_by_count()
        listed = [row for row in rows if (row["column"], row["file"]) == (ordinal, file)]
        assert number == min(10, len(ranked))
        assert [row[f"value_{column_statistics.encoding}"] for row in listed] == ranked.values.to_pylist()
        assert [row["frequency"] for row in listed] == ranked.counts.tolist()


def test_histograms_are_what_the_kernel_found(written):
    statistics, objects = written
    ((ref, data),) = objects["histograms"]
    rows = decode_object(ref, data).to_pylist()
    assert [(row["column"], row["file"]) for row in rows] == [
        (ordinal, file) for ordinal in range(len(columns())) for file in (0, 1) if statistics[file][ordinal].histogram
    ]
    for row in rows:
        column_statistics = statistics[row["file"]][row["column"]]
        edges = {encoding: row[f"edges_{encoding}"] for encoding in ("long", "double", "binary")}
        assert edges.pop(column_statistics.encoding) == column_statistics.histogram.edges.to_pylist()
        assert set(edges.values()) == {None}
        counts = column_statistics.histogram.counts
        assert row["counts"] == (None if counts is None else counts.tolist())
        assert row["distincts"] == column_statistics.histogram.distincts.tolist()


@pytest.mark.parametrize("shape", ["numbers", "texts", "doubles"])
def test_details_stay_below_a_tenth_of_the_data_file(tmp_path, shape):
    random, rows = np.random.default_rng(1), 20_000
    numbers = random.integers(0, 20_000, (30, rows))
    make = {
        "numbers": pa.array,
        "texts": lambda array: pa.array([f"name {n} of {n}" for n in array.tolist()]),
        "doubles": lambda array: pa.array(array / 7),
    }[shape]
    kind = {"numbers": "bigint", "texts": "string", "doubles": "double"}[shape]
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({f"{kind} {i}": make(array) for i, array in enumerate(numbers)}), path, compression="zstd")
    named = [FileColumn(column_) for column_ in _columns(kind, 30)]
    size = path.stat().st_size
    destination = BlockDestination(
        store=TaskStore(str(tmp_path)),
        table=TABLE,
        settings={"histogram_bins": 1000, "frequencies_top": 1000},
        budget=1 << 30,
    )
    builder = BlockBuilder(
        destination=destination, depth="full", columns=tuple(file_column.column for file_column in named)
    )
    file = DataFile(path=str(path), size=size, rows=rows, format="parquet")
    statistics = analyze_parquet(str(path), named, detail=destination.detail(file)).columns
    builder.add(file, enumerate(statistics))
    builder.finish()
    stored = sum(path.stat().st_size for path in (tmp_path / "objects").iterdir())
    assert size / 100 < stored < size / 10


def test_lists_are_cut_longest_first_and_say_so():
    pairs = enumerate(analyze(values) for values in ([*range(50)] * 2, [*range(5000)] * 2))
    (_, short), (_, long) = fit_to_file_size(pairs, 100_000, 100)
    assert (short.frequencies, short.frequencies_floor, len(short.values)) == ("complete", 0, 50)
    assert (long.frequencies, long.frequencies_floor, long.values.values.to_pylist()) == ("top", 2, [*range(100)])


def test_lists_of_a_small_table_are_whole_and_leave_the_room_of_the_others():
    allowance = choose_allowance(50 << 20)
    limits = DetailLimits(longest_uncut=allowance.longest_uncut)
    pairs = [
        (0, analyze(np.random.default_rng(1).permutation(1 << 20)[:4_001] << 40, limits)),
        (1, analyze([*range(9_000)] * 2, limits)),
    ]
    (_, short), (_, long) = fit_to_file_size(pairs, 100_000, 100, allowance)
    assert (short.frequencies, len(short.values), long.frequencies) == ("complete", 4_001, "top")
    (_, alone) = fit_to_file_size(pairs[1:], 100_000, 100, allowance)[0]
    assert (alone.values, alone.theta, alone.bloom) == (long.values, long.theta, long.bloom)
    ((_, cut),) = fit_to_file_size(pairs[:1], 10_000, 100)
    assert cut.frequencies != "complete"


def test_sketches_that_are_kept_take_the_room_of_nothing_else():
    pairs = [(number, analyze([*range(number, 9_000 + number)])) for number in range(3)]
    cut, complete = (
        [fitted for _, fitted in fit_to_file_size(pairs, 1_000_000, 100, Allowance(keeps_sketches=keeps))]
        for keeps in (False, True)
    )
    assert [fitted.theta for fitted in cut] == [None] * 3
    assert [fitted.theta for fitted in complete] == [fitted.theta for _, fitted in pairs]
    for short, other in zip(cut, complete, strict=True):
        assert short.bloom
        assert short.bloom == other.bloom
        assert (short.histogram, short.frequencies) == (other.histogram, other.frequencies)


def analyze(values, detail=None):
    kernel = ColumnKernel(_columns("bigint", 1)[0], detail=detail or DetailLimits())
    kernel.add(pa.array(values))
    return kernel.finish(len(values))


def _columns(kind, count):
    return [Column(key=str(i), path=(f"{kind} {i}",), type=kind, encoding=encoding_of(kind)) for i in range(count)]
