"""Lists of where each value of a table lives: of keys in no order the files that hold one are read, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import metastore
from metastore.format.manifest import SummaryRef
from pipeline.checks import Stored
from planner.conftest import NO_METRICS
from planner.plans import check, files_read

pytestmark = pytest.mark.spark

FILES, ROWS = 8, 3_000
COLUMNS = "k bigint, s string, x double, n decimal(30,4), few int"
ROW = (
    "pmod(hash(id), 9000) k", "concat('k', pmod(hash(id), 9000)) s",
    "IF(id % 97 = 0, double('NaN'), pmod(hash(id), 9000) / 4) x",
    "IF(id % 13 = 0, null, cast(pmod(hash(id), 9000) AS decimal(30,4))) n", "cast(id % 5 AS int) few",
)  # fmt: skip
KEYED = ("k", "s", "x", "n", "few")


def append(spark, table, file):
    """A file with rows of the whole range; two rows mark the ends, so that bounds say nothing."""
    part = spark.range(file * ROWS, (file + 1) * ROWS).selectExpr(*ROW)
    marks = spark.sql(
        "SELECT -1L k, '' s, -1.0D x, -1.0000BD n, 0 few UNION ALL SELECT 1099511627776L, 'z', 1e300D, 1e20, 9"
    )
    part.union(marks).coalesce(1).writeTo(table).append()


def filled(spark, name):
    for file in range(FILES):
        append(spark, name, file)
    metastore.analyze(spark, name, progress=False, distribution=True)
    return name


@pytest.fixture(scope="module")
def distributed(spark):
    """A table that no test changes."""
    name = "ice.db.distributed"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg TBLPROPERTIES ({NO_METRICS})")
    yield filled(spark, name)
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def changeable_table(spark, new_table):
    """A table that the test may change."""
    return filled(spark, new_table(COLUMNS))


def holding(spark, table, where):
    return spark.sql(f"SELECT count(DISTINCT _file) FROM {table} WHERE {where}").collect()[0][0]


def statistics(spark, table, where):
    query = f"SELECT * FROM {table} WHERE {where}"
    rows = spark.sql("SELECT DISTINCT statistic FROM metastore.explain(:q) WHERE NOT kept", {"q": query}).collect()
    return [row.statistic for row in rows]


@pytest.mark.parametrize(
    "where",
    [
        "k = 77", "s = 'k77'", "x = 19.25", "n = 77", "k IN (5, 77, 4242)", "s IN ('k5', 'k4242', 'none')",
        "k = 99999", "s = 'none'", "x = double('NaN')", "n IN (1.5, 2.5)", "k <=> 8999", "few = 7 OR k = 123",
        "few = 3 AND s = 'k123'",
    ],
)  # fmt: skip
def test_the_files_that_hold_it_are_read_and_no_others(spark, distributed, where):
    expected = holding(spark, distributed, where)
    read = files_read(check(spark, f"SELECT k, s, n, few FROM {distributed} WHERE {where}"))[0]
    assert read <= expected if "few = 3" not in where else read <= holding(spark, distributed, "s = 'k123'")
    if expected < FILES:
        assert all("where each value is listed" in statistic for statistic in statistics(spark, distributed, where))


@pytest.mark.parametrize("where", ["k <> 77", "k NOT IN (1, 2)", "few NOT IN (0, 1, 2, 3, 4, 9)", "n IS NULL"])
def test_negations_and_nulls(spark, distributed, where):
    check(spark, f"SELECT k, s, n, few FROM {distributed} WHERE {where}")


def test_all_rows_of_every_file_are_among_the_values(spark, distributed):
    df = check(spark, f"SELECT k FROM {distributed} WHERE few NOT IN (0, 1, 2, 3, 4, 9)")
    assert files_read(df) in ([0], [])


def test_located_with_exact_frequencies(spark, distributed):
    for column, value, where in (("k", "77", "k = 77"), ("s", "'k77'", "s = 'k77'"), ("n", "77", "n = 77"),
                                 ("few", "3", "few = 3")):  # fmt: skip
        located = spark.sql(f"SELECT * FROM metastore.locate('{distributed}', '{column}', {value})").collect()
        rows = spark.sql(f"SELECT _file, count(*) n FROM {distributed} WHERE {where} GROUP BY 1").collect()
        assert {row.path: (row.frequency, row.exact) for row in located} == {row[0]: (row[1], True) for row in rows}


@pytest.mark.slow
def test_files_that_came_later_are_read(spark, changeable_table):
    append(spark, changeable_table, FILES)
    where = f"k = {spark.sql(f'SELECT max(k) FROM {changeable_table} WHERE k < 9000').collect()[0][0]}"
    before = holding(spark, changeable_table, where)
    assert files_read(check(spark, f"SELECT * FROM {changeable_table} WHERE {where}"))[0] >= before
    metastore.analyze(spark, changeable_table, progress=False)  # without the distribution: that of before still holds
    check(spark, f"SELECT * FROM {changeable_table} WHERE {where}")
    metastore.analyze(spark, changeable_table, progress=False, distribution=["k"])
    assert files_read(check(spark, f"SELECT * FROM {changeable_table} WHERE {where}")) == [before]


def rewritten(spark, table, change):
    """Stores the lists of the newest snapshot changed, digests and all, as first versions did: nobody added them up."""
    stored = Stored.of(spark, table)
    store, entries = stored.store.writable(), []
    for entry in stored.snapshot.frequencies:
        rows = change(store.get(entry.object))
        entries.append(SummaryRef(store.put("table-frequencies", rows, [rows.num_rows]), entry.columns))
    _committed(stored, replace(stored.snapshot, frequencies=tuple(entries), placed=None))


def _committed(stored, snapshot):
    store = stored.store.writable()
    store.commit(stored.manifest.table, lambda now: replace(now, snapshots=(*now.snapshots[:-1], snapshot)))


def without_a_value(rows):
    return rows.filter(pc.invert(pc.fill_null(pc.equal(rows["value_long"], 77), False)))  # noqa: FBT003


def in_no_file(rows):
    """Maps name data files that the snapshot does not have: no value is in half of the files."""
    assert rows["files_dense"].null_count == rows.num_rows
    return _with_maps(rows, lambda pairs: pairs and [(file + 90, count) for file, count in pairs])


def nowhere(rows):
    return _with_maps(rows, lambda _: None)


def _with_maps(rows, change):
    field_index = rows.schema.get_field_index("files_sparse")
    field = rows.schema.field(field_index)
    return rows.set_column(
        field_index, field, pa.chunked_array([pa.array(map(change, rows[field_index].to_pylist()), field.type)])
    )


@pytest.mark.slow
@pytest.mark.parametrize("change", [without_a_value, in_no_file, nowhere])
def test_lists_that_do_not_add_up_skip_no_file(spark, new_table, change):
    name = new_table("k bigint, s string")
    for file in range(FILES):
        rows = spark.range(file * 40, file * 40 + 90).selectExpr("id * 7 % 401 k", "concat('k', id) s")
        rows.coalesce(1).writeTo(name).append()
    metastore.analyze(spark, name, progress=False, distribution=["k"])
    rewritten(spark, name, change)
    check(spark, f"SELECT * FROM {name} WHERE k = 77")
    statistics_named = statistics(spark, name, "k = 77")
    if change is not without_a_value:  # of files that never had it the lists account for all rows
        assert not any("where each value" in statistic for statistic in statistics_named)


def as_they_were(rows):
    return rows


def test_lists_that_are_not_cut_by_hashes_are_read_still(spark, changeable_table):
    rewritten(spark, changeable_table, as_they_were)
    for where in ("k = 77", "s IN ('k5', 'k4242', 'none')", "x = double('NaN')", "n = 77"):
        expected = holding(spark, changeable_table, where)
        assert files_read(check(spark, f"SELECT k, s, n, few FROM {changeable_table} WHERE {where}"))[0] <= expected


def change_placed_counts(change):
    """The newest snapshot with another object of what its lists tell."""

    def changed(stored):
        store, rows = stored.store.writable(), stored.store.get(stored.snapshot.placed)
        counts = [change(row["file"], row["rows"]) for row in rows.to_pylist()]
        rows = rows.set_column(2, rows.schema.field(2), pa.array(counts))
        return replace(stored.snapshot, placed=store.put("table-placed", rows, [rows.num_rows]))

    return changed


def nothing_is_said(stored):
    store, rows = stored.store.writable(), stored.store.get(stored.snapshot.placed)
    return replace(stored.snapshot, placed=store.put("table-placed", rows.slice(0, 1), [1]))


def parts_are_gone(stored):
    """Their objects are damaged: whether a file has a value is not known."""
    folder = Path(stored.store.uri.removeprefix("file:")) / "objects"
    for entry in stored.snapshot.frequencies:
        if entry.part:
            (folder / entry.object.name).write_bytes(b"PAR1")
    return stored.snapshot


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        change_placed_counts(lambda _, count: count - 1),
        change_placed_counts(lambda _, count: count + 1),
        nothing_is_said,
        parts_are_gone,
    ],
)
def test_of_files_of_which_not_all_is_told_nothing_is_concluded(spark, changeable_table, change):
    stored = Stored.of(spark, changeable_table)
    _committed(stored, change(stored))
    for where in ("k = 77", "s = 'k77'", "k NOT IN (1, 2)"):
        check(spark, f"SELECT k, s, n, few FROM {changeable_table} WHERE {where}")
        listed = [
            statistic for statistic in statistics(spark, changeable_table, where) if "where each value" in statistic
        ]
        assert not listed or change in (nothing_is_said, parts_are_gone)


def test_of_some_files_all_is_told(spark, changeable_table):
    stored = Stored.of(spark, changeable_table)
    _committed(stored, change_placed_counts(lambda file, count: count - file % 2)(stored))
    for where in ("k = 77", "s = 'k77'", "k = 99999"):
        check(spark, f"SELECT k, s, n, few FROM {changeable_table} WHERE {where}")
    assert len(statistics(spark, changeable_table, "k = 99999")) >= 1
