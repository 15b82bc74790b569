"""Parquet files as other writers make them: read as Spark reads them, or refused."""

import datetime as dt
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernel.samples import column, columns, file_column, table
from metastore.format.value_rendering import to_python_value
from metastore.kernel import parquet_file as kernel_read
from metastore.kernel.footer_bounds import analyze_footer
from metastore.kernel.parquet_file import analyze_parquet
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile

DAY = dt.datetime(2026, 1, 31, 12, 0, 0, 123456)  # noqa: DTZ001 - local


@pytest.fixture
def write(tmp_path):
    def write(content, **options):
        path = str(tmp_path / "data.parquet")
        content = content if isinstance(content, pa.Table) else pa.table({"c": content})
        pq.write_table(content, path, **options)
        return path

    return write


def analyze(path, spark_type, name="c"):
    return analyze_parquet(path, [file_column(spark_type, name)]).columns[0]


def test_an_open_file_is_read_too(write):
    path = write(pa.array([1, 2], pa.int64()))
    with pa.OSFile(path) as file:
        assert analyze(file, "bigint").sum_exact == 3


@pytest.mark.parametrize(
    ("written", "spark_type"),
    [
        (pa.int8(), "bigint"),
        (pa.int16(), "int"),
        (pa.int32(), "bigint"),
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.decimal128(5, 0), "decimal(9,0)"),
        (pa.decimal128(9, 0), "decimal(30,0)"),
        (pa.float32(), "double"),
    ],
)
def test_narrower_types_are_widened(write, written, spark_type):
    narrow = analyze(write(pa.array([1, 100, None], pa.int16()).cast(written)), spark_type)
    wide = {"double": pa.float64(), "decimal(30,0)": pa.decimal128(30, 0), "decimal(9,0)": pa.decimal128(9, 0)}
    exact = {"bigint": pa.int64(), "int": pa.int32(), "smallint": pa.int16(), **wide}[spark_type]
    same = analyze(write(pa.array([1, 100, None], pa.int16()).cast(exact)), spark_type)
    for name in ("lo", "hi", "nulls", "distinct", "theta", "sum", "mean", "m2", "percentiles", "avg_len"):
        assert getattr(narrow, name) == getattr(same, name), name


def test_unsigned_values_beyond_the_signed_range(write):
    statistics = analyze(write(pa.array([2**32 - 1, 0], pa.uint32())), "bigint")
    assert (statistics.lo, statistics.hi) == (0, 2**32 - 1)


@pytest.mark.parametrize(
    ("values", "spark_type"),
    [
        (pa.array([1], pa.int64()), "int"),
        (pa.array([1], pa.int32()), "smallint"),
        (pa.array([1], pa.uint32()), "int"),
        (pa.array([1], pa.uint64()), "bigint"),
        (pa.array([1], pa.int32()), "double"),
        (pa.array([1.0], pa.float64()), "float"),
        (pa.array([1.0]).cast(pa.float16()), "float"),
        (pa.array([1], pa.int32()).cast(pa.decimal128(20, 2)), "decimal(20,3)"),
        (pa.array([1], pa.int32()).cast(pa.decimal128(20, 2)), "decimal(10,2)"),
        (pa.array([1], pa.int64()), "decimal(10,0)"),
        (pa.array([1], pa.int32()), "date"),
        (pa.array([1], pa.int64()), "timestamp"),
        (pa.array([1], pa.timestamp("ns", "UTC")), "timestamp"),
        (pa.array([1], pa.timestamp("ns")), "timestamp_ntz"),
        (pa.array([1], pa.timestamp("us")), "timestamp"),
        (pa.array([1], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([1], pa.time64("us")), "bigint"),
        (pa.array([b"ab"], pa.binary(2)), "string"),
        (pa.array(["1"]), "int"),
        (pa.array([[1]], pa.list_(pa.int32())), "int"),
        (pa.array([{"a": 1}]), "int"),
        (pa.array([[1]], pa.list_(pa.int32())), "string"),
        (pa.array([{"a": "x"}]), "string"),
        (pa.array([["x"]]), "string"),
        (pa.array([[b"x"]]), "binary"),
    ],
)
def test_what_spark_would_read_otherwise_is_refused(write, values, spark_type):
    with pytest.raises(UnsupportedDataFile, match=r"column c is .* in the file and .* in the table"):
        analyze(write(values), spark_type)


@pytest.mark.parametrize(("unit", "exact"), [("ms", DAY.replace(microsecond=123000)), ("us", DAY)])
def test_timestamps_in_millis_and_micros(write, unit, exact):
    values = pa.array([DAY.replace(microsecond=DAY.microsecond if unit == "us" else 123000)], pa.timestamp(unit))
    local = analyze(write(values), "timestamp_ntz")
    assert to_python_value(local.lo, column("timestamp_ntz")) == exact
    instant = analyze(write(values.cast(pa.timestamp(unit, "UTC"))), "timestamp")
    assert instant.lo == local.lo


def test_millis_that_overflow_micros_are_refused(write):
    with pytest.raises(UnsupportedDataFile):
        analyze(write(pa.array([2**62], pa.timestamp("ms", "UTC"))), "timestamp")


def test_int96_is_read_in_micros_far_beyond_nanos(write):
    far = [dt.datetime(1, 1, 1), DAY, dt.datetime(9999, 12, 31)]  # noqa: DTZ001 - local
    path = write(pa.array(far, pa.timestamp("us")), use_deprecated_int96_timestamps=True)
    statistics = analyze(path, "timestamp")
    values = [
        to_python_value(value, column("timestamp"))
        for value in (statistics.lo, statistics.percentiles[50], statistics.hi)
    ]
    assert values == [moment.replace(tzinfo=dt.timezone.utc) for moment in far]
    with pytest.raises(UnsupportedDataFile, match="INT96"):
        analyze(path, "timestamp_ntz")
    assert analyze_footer(path, [file_column("timestamp")]).columns[0].lo is None


@pytest.mark.parametrize(
    ("keys", "int96", "refused"),
    [
        ({"org.apache.spark.version": "2.4.8"}, False, True),
        ({"org.apache.spark.version": "3.0.1"}, False, False),
        ({"org.apache.spark.version": "3.0.1"}, True, True),
        ({"org.apache.spark.version": "3.1.0"}, True, False),
        ({"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyDateTime": ""}, False, True),
        ({"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyDateTime": ""}, True, False),
        ({"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyINT96": ""}, True, True),
        ({}, True, False),
    ],
)
def test_the_legacy_calendar_is_refused(write, keys, int96, refused):
    content = pa.table({"c": pa.array([DAY]).cast(pa.timestamp("us", None if int96 else "UTC"))})
    path = write(content.replace_schema_metadata(keys), use_deprecated_int96_timestamps=int96)
    if refused:
        with pytest.raises(UnsupportedDataFile, match="legacy calendar"):
            analyze(path, "timestamp")
        assert analyze_footer(path, [file_column("timestamp")]).columns[0].lo is None
    else:
        assert to_python_value(analyze(path, "timestamp").lo, column("timestamp")).replace(tzinfo=None) == DAY


def test_uuids_are_strings(write):
    ids = [uuid.UUID(int=n * 0x1234567890ABCDEF1234567890ABCDEF % 2**128) for n in (1, 5, 3)]
    storage = pa.array([ids[0].bytes, None, ids[1].bytes, ids[2].bytes], pa.binary(16))
    statistics = analyze(write(pa.ExtensionArray.from_storage(pa.uuid(), storage)), "string")
    texts = sorted(str(uuid_).encode() for uuid_ in ids)
    assert (statistics.lo, statistics.hi, statistics.nulls, statistics.distinct, statistics.max_len) == (
        texts[0],
        texts[-1],
        1,
        3,
        36,
    )
    assert statistics.theta == analyze(write(pa.array([str(uuid_) for uuid_ in ids])), "string").theta


def test_fixed_length_bytes_are_binary(write):
    statistics = analyze(write(pa.array([b"ab", b"aa"], pa.binary(2))), "binary")
    assert (statistics.lo, statistics.hi, statistics.avg_len) == (b"aa", b"ab", 2.0)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_arrow_s_own_kinds_of_strings(write, kind):
    values = pa.array(["b", None, "a", "b"]).cast(kind) if not pa.types.is_dictionary(kind) else None
    values = values if values is not None else pa.array(["b", None, "a", "b"]).dictionary_encode()
    statistics = analyze(write(values), "string")
    assert (statistics.lo, statistics.hi, statistics.nulls, statistics.distinct) == (b"a", b"b", 1, 2)


def nested():
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("s", pa.string()), pa.field("l", pa.list_(pa.int32()))])
    rows = [
        None,
        {"a": None, "m": [("k", 1)], "d.e": 1},
        {"a": {"x": 1, "s": "p", "l": [1, 2]}, "m": None, "d.e": 2},
        {"a": {"x": None, "s": "q", "l": None}, "m": [], "d.e": 3},
        {"a": {"x": 5, "s": None, "l": []}, "m": [("k", None)], "d.e": None},
    ]
    outer = pa.struct([("a", inner), ("m", pa.map_(pa.string(), pa.int32())), ("d.e", pa.int64())])
    return pa.table({"first": pa.array(range(5), pa.int32()), "o": pa.array(rows, outer), "last": pa.array("abcde")})


def test_leaves_of_structs_are_null_where_a_parent_is(write):
    path = write(
        pa.table({**dict(zip(nested().column_names, nested().columns, strict=True)), "last": pa.array(list("abcde"))})
    )
    expected = {
        ("o", "a", "x"): ("int", 3),
        ("o", "a", "s"): ("string", 3),
        ("o", "a", "l"): ("array<int>", 3),
        ("o", "m"): ("map<string,int>", 2),
        ("o", "d.e"): ("bigint", 2),
        ("last",): ("string", 0),
        ("first",): ("int", 0),
        ("o", "gone"): ("int", None),
    }
    statistics = analyze_parquet(path, [file_column(kind, name) for name, (kind, _) in expected.items()]).columns
    assert [column_statistics and column_statistics.nulls for column_statistics in statistics] == [
        nulls for _, nulls in expected.values()
    ]
    assert (statistics[0].lo, statistics[0].hi, statistics[1].lo, statistics[4].sum_exact, statistics[5].hi) == (
        1,
        5,
        b"p",
        6,
        b"e",
    )
    assert statistics[-1] is None
    footer = analyze_footer(path, [file_column(kind, name) for name, (kind, _) in expected.items()]).columns
    assert [column_statistics and column_statistics.nulls for column_statistics in footer] == [
        3,
        3,
        None,
        None,
        2,
        0,
        0,
        None,
    ]
    assert (footer[0].lo, footer[0].hi) == (1, 5)


def test_texts_in_structs_are_read_from_several_row_groups(write):
    texts = [{"s": f"t{n % 7}", "n": n} for n in range(100)]
    path = write(pa.table({"o": texts, "last": list(range(100))}), row_group_size=10)
    kinds = {("o", "s"): "string", ("o", "n"): "bigint", ("last",): "bigint"}
    text, number, last = analyze_parquet(path, [file_column(kind, name) for name, kind in kinds.items()]).columns
    assert (text.lo, text.hi, text.distinct, text.nulls) == (b"t0", b"t6", 7, 0)
    assert (number.hi, last.hi) == (99, 99)


def test_a_struct_of_which_only_nulls_are_counted(write):
    variant = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), nullable=False)])
    rows = [None, {"metadata": b"m", "value": b"v"}, {"metadata": b"m", "value": None}]
    statistics = analyze(write(pa.array(rows, variant)), "variant")
    assert (statistics.rows, statistics.nulls, statistics.encoding) == (3, 1, None)
    assert statistics.compressed_bytes > 0


def with_ids(names_and_ids):
    fields = [pa.field(n, pa.int32(), metadata={"PARQUET:field_id": str(i)}) for n, i in names_and_ids]
    return pa.table([pa.array([i], pa.int32()) for _, i in names_and_ids], pa.schema(fields))


def test_columns_are_matched_by_field_id_whatever_their_name(write):
    path = write(with_ids([("b", 1), ("a", 2)]))
    analyzed = analyze_parquet(path, [FileColumn(column("int", "a"), 1), FileColumn(column("int", "b"), 7)])
    assert analyzed.columns[0].lo == 1
    assert analyzed.columns[1] is None


def test_a_file_without_ids_is_refused_where_ids_are_wanted(write):
    with pytest.raises(UnsupportedDataFile, match="the file has no field ids"):
        analyze_parquet(write(pa.array([1])), [FileColumn(column("bigint"), 1)])


def test_columns_are_matched_by_another_path(write):
    analyzed = analyze_parquet(write(pa.array([1])), [FileColumn(column("bigint", "shown"), None, ("c",))])
    assert analyzed.columns[0].lo == 1


@pytest.mark.parametrize("content", [b"", b"not Parquet at all", b"PAR1" + b"\0" * 20 + b"PAR1"])
def test_what_is_not_parquet_is_refused(tmp_path, content):
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    for analyze_file in (analyze_parquet, analyze_footer):
        with pytest.raises(UnsupportedDataFile):
            analyze_file(str(path), [file_column("int")])


def test_a_damaged_page_and_a_missing_file_are_refused(write, tmp_path):
    path = write(pa.array(np.arange(100_000)), use_dictionary=False, compression="zstd")
    with Path(path).open("r+b") as file:
        file.seek(4)  # the header of the first page
        file.write(b"\xff" * 400)
    with pytest.raises(UnsupportedDataFile):
        analyze(path, "bigint")
    with pytest.raises(UnsupportedDataFile):
        analyze(str(tmp_path / "absent.parquet"), "bigint")


@pytest.mark.parametrize("rows", [0, 1])
def test_files_with_hardly_any_rows(write, rows):
    path = write(table(rows))
    analyzed = analyze_parquet(path, columns())
    assert [column_statistics.rows for column_statistics in analyzed.columns] == [rows] * len(columns())
    assert all(
        column_statistics.percentiles is None or len(column_statistics.percentiles) == 101
        for column_statistics in analyzed.columns
    )
    assert analyze_footer(path, columns()).rows == rows


@pytest.mark.slow
def test_a_small_budget_reads_pieces_of_row_groups_and_finds_the_same_bounds(write):
    path = write(table(3000))
    exact, tight = analyze_parquet(path, columns()), analyze_parquet(path, columns(), 20_000)
    for exact_column, other, requested in zip(exact.columns, tight.columns, columns(), strict=True):
        for name in ("rows", "nulls", "nans", "lo", "hi", "sum_exact", "max_len", "trues", "compressed_bytes"):
            assert getattr(exact_column, name) == getattr(other, name), (requested, name)
        assert exact_column.theta == other.theta


_PEAK = """
import sys
import pyarrow as pa
from kernel.samples import wanted
from metastore.kernel import parquet_file
parquet_file._LARGE_GROUP, parquet_file._STREAM_BYTES = int(sys.argv[2]), 1 << 20
parquet_file.analyze_parquet(sys.argv[1], [wanted("string", "c")], 16 << 20)
print(pa.default_memory_pool().max_memory())
"""


@pytest.mark.slow
def test_chunks_of_large_row_groups_are_not_read_as_a_whole(write):
    rows, width = 1_000_000, 36
    letters = np.random.default_rng(1).integers(97, 123, rows * width, np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    texts = pa.Array.from_buffers(pa.large_string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    path = write(texts, row_group_size=rows, use_dictionary=False, compression="none", store_schema=False)

    def peak(large):
        command = [sys.executable, "-c", _PEAK, path, str(large)]
        return int(subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[1]).stdout)

    assert peak(1 << 20) < 24 << 20 < peak(1 << 40)


_OF_FOOTER = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
def resident():
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) << 10
before = resident()
file = pq.ParquetFile(sys.argv[1], metadata=pq.read_metadata(sys.argv[1]))
print(resident() - before)
"""


def test_a_footer_in_memory_takes_no_more_than_the_budget_is_less(write):
    groups, number, budget = 1_500, 20, 1 << 30
    path = write(pa.table([pa.array(range(groups))] * number, [f"c{i}" for i in range(number)]), row_group_size=1)
    output = subprocess.run([sys.executable, "-c", _OF_FOOTER, path], check=True, capture_output=True)
    less = budget - kernel_read._subtract_footer(pq.read_metadata(path), budget)
    assert int(output.stdout) / 2 < less
    assert int(output.stdout) < 1.3 * less
    assert kernel_read._subtract_footer(pq.read_metadata(path), 4 << 20) == 1 << 20


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([pa.field("c", pa.int32()), pa.field("c", pa.int32())], "same name"),
        ([pa.field("s", pa.struct([pa.field("c", pa.int32())] * 2)), pa.field("c", pa.int32())], "same name"),
        ([pa.field(name, pa.int32(), metadata={"PARQUET:field_id": "1"}) for name in "cd"], "same field id"),
    ],
)
@pytest.mark.parametrize("read", [analyze_parquet, analyze_footer])
def test_fields_that_cannot_be_told_apart_are_refused(write, fields, message, read):
    path = write(pa.Table.from_arrays([pa.nulls(1, field.type) for field in fields], schema=pa.schema(fields)))
    with pytest.raises(UnsupportedDataFile, match=message):
        read(path, [file_column("int", "c")])
