"""Every field of the summary against DuckDB on the same Parquet files, for every type and several ways of writing."""

import math
from decimal import Context

import duckdb
import pyarrow.parquet as pq
import pytest

from kernel.samples import columns, table
from metastore.format.value_rendering import CUT_BYTES, to_python_value
from metastore.kernel.parquet_file import analyze_parquet

ROWS = 4_000
WRITERS = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"use_dictionary": True, "compression": "zstd"},
    "fallback": {"use_dictionary": True, "dictionary_pagesize_limit": 512},
    "groups": {"row_group_size": 333, "compression": "snappy"},
    "v2": {"data_page_version": "2.0", "version": "2.6", "data_page_size": 1000},
    "old": {"version": "1.0", "store_schema": False},
}


@pytest.fixture(scope="module", params=WRITERS)
def written(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("duckdb") / f"{request.param}.parquet")
    pq.write_table(table(ROWS), path, **WRITERS[request.param])
    analyzed = analyze_parquet(path, columns())
    assert analyzed.rows == ROWS
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        connection.execute(f"CREATE TABLE written AS FROM read_parquet('{path}')")

        def ask(column, expressions):
            name = f'"{column.name}"'
            return connection.execute(f"SELECT {', '.join(expressions).replace('@', name)} FROM written").fetchone()

        yield path, ask, dict(zip([file_column.column for file_column in columns()], analyzed.columns, strict=True))


def test_counts(written):
    _, ask, statistics = written
    for column, ours in statistics.items():
        rows, values, distinct = ask(column, ["count(*)", "count(@)", "count(DISTINCT @)"])
        assert (ours.rows, ours.nulls, ours.nans) == (rows, rows - values, 0), column
        assert (ours.distinct, ours.distinct_error) == (distinct, 0.0), column


def test_bounds(written):
    _, ask, statistics = written
    for column, ours in statistics.items():
        lo, hi = ask(column, ["min(@)", "max(@)"])
        if ours.lo_exact is not False:
            assert to_python_value(ours.lo, column) == lo, column
        else:
            assert ours.lo == _bytes(lo)[:CUT_BYTES]
        if ours.hi_exact is not False:
            assert to_python_value(ours.hi, column) == hi, column
        else:
            assert ours.hi > _bytes(hi)
        assert ours.lo_exact is (None if lo is None else len(_bytes(lo)) <= CUT_BYTES)
        assert ours.hi_exact is (None if hi is None else len(_bytes(hi)) <= CUT_BYTES)


def test_percentiles(written):
    _, ask, statistics = written
    steps = ", ".join(f"{p / 100:.2f}" for p in range(101))
    for column, ours in statistics.items():
        theirs = ask(column, [f"quantile_disc(@, [{steps}])"])[0]
        if theirs is None:
            assert ours.percentiles is None
        elif column.encoding == "binary" and not column.type.startswith("decimal"):
            assert ours.percentiles == [_bytes(value)[:CUT_BYTES] for value in theirs], column
        else:
            assert [to_python_value(value, column) for value in ours.percentiles] == theirs, column


def test_moments(written):
    _, ask, statistics = written
    for column, ours in statistics.items():
        if column.type in ("string", "binary", "date", "timestamp", "timestamp_ntz"):
            continue
        number = "@::int" if column.type == "boolean" else "@"
        total, mean, variance = ask(column, [f"sum({number})", f"avg({number}::double)", f"var_pop({number}::double)"])
        if mean is None:
            assert (ours.sum, ours.mean, ours.m2, ours.sum_exact) == (None, None, None, None)
            continue
        assert ours.sum == pytest.approx(float(total), rel=1e-12), column
        assert ours.mean == pytest.approx(mean, rel=1e-9), column
        assert ours.m2 == pytest.approx(variance * (ours.rows - ours.nulls), rel=1e-9), column
        if column.encoding == "double":
            assert ours.sum_exact is None
        else:
            scale = int(column.type[:-1].split(",")[1]) if column.type.startswith("decimal") else 0
            assert ours.sum_exact == int(total.scaleb(scale, Context(prec=40)) if scale else total), column


def test_moments_of_time_are_in_days_and_microseconds(written):
    _, ask, statistics = written
    since, start = "epoch_us(@)", 946_684_800_000_000
    units = {"date": ("(@ - DATE '1970-01-01')", 0), "timestamp": (since, start), "timestamp_ntz": (since, start)}
    for column, ours in statistics.items():
        if column.type in units and ours.mean is not None:
            number, pivot = units[column.type]  # DuckDB's variance loses digits of large numbers
            total, deviation = ask(column, [f"sum({number})", f"stddev_pop({number} - {pivot})"])
            assert (ours.sum_exact, ours.sum) == (total, float(total))
            assert ours.mean == pytest.approx(total / (ours.rows - ours.nulls), rel=1e-15)
            assert math.sqrt(ours.m2 / (ours.rows - ours.nulls)) == pytest.approx(deviation, rel=1e-9)


def test_lengths_and_trues(written):
    _, ask, statistics = written
    for column, ours in statistics.items():
        if column.type == "boolean":
            assert ours.trues == ask(column, ["coalesce(count_if(@), 0)"])[0]
        if column.type in ("string", "binary"):
            length = "strlen" if column.type == "string" else "octet_length"
            average, longest = ask(column, [f"avg({length}(@))", f"max({length}(@))"])
            assert (ours.avg_len, ours.max_len) == (None if average is None else pytest.approx(average), longest)


def test_sizes_are_the_footer_s(written):
    path, _, statistics = written
    metadata = pq.read_metadata(path)
    for position, ours in enumerate(statistics.values()):
        chunks = [metadata.row_group(i).column(position) for i in range(metadata.num_row_groups)]
        assert ours.compressed_bytes == sum(chunk.total_compressed_size for chunk in chunks)
        assert ours.uncompressed_bytes == sum(chunk.total_uncompressed_size for chunk in chunks)


def _bytes(value):
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""
