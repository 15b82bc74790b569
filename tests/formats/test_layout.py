"""How the values of columns are spread over data files, and that what is advised helps."""

from __future__ import annotations

import pytest

import metastore
from formats.kinds import each_format
from planner.plans import conf

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 16, 2000


@pytest.fixture(params=each_format("iceberg", "delta"))
def scattered(request, spark):
    """Sixteen files: `id` in order, `user` in none, `kind` of three values, `tag` null."""
    name = {"iceberg": "ice.db.scattered", "delta": "scattered"}[request.param]
    sized = "TBLPROPERTIES ('write.target-file-size-bytes' = '12000', 'write.parquet.row-group-size-bytes' = '4096')"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} (id bigint, user string, kind int, tag string) USING {request.param} "
              f"{sized if request.param == 'iceberg' else ''}")  # fmt: skip
    rows = f"""SELECT id, sha2(CAST(id AS string), 256) user, CAST(id % 3 AS int) kind, CAST(null AS string) tag
        FROM range(0, {FILES * ROWS}, 1, {FILES})"""
    spark.sql(f"INSERT INTO {name} {rows}")
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
    yield name
    spark.sql(f"DROP TABLE {name}")


def test_what_is_in_order_and_what_is_not(spark, scattered):
    layouts = {row["column_name"]: row for row in metastore.layout(spark, scattered)}
    files = len(metastore.files(spark, scattered))
    assert files >= FILES
    assert (layouts["id"]["files_per_lookup"], layouts["id"]["overlap_depth"], layouts["id"]["sorted"]) == (1, 1, 1)
    assert layouts["id"]["advice"] is None
    assert layouts["user"]["overlap_depth"] > files / 2
    assert layouts["user"]["sorted"] == 0
    assert 1 <= layouts["user"]["files_per_lookup"] < 2, "value lists and bloom filters tell what bounds do not"
    assert (layouts["kind"]["files_per_lookup"], layouts["kind"]["overlap_depth"], layouts["kind"]["sorted"]) == (
        files,
        files,
        0,
    )
    assert layouts["tag"]["files_per_lookup"] is None
    assert [row["column_name"] for row in metastore.layout(spark, scattered, "user")] == ["user"]


def test_files_that_share_a_value_overlap(spark, make_analyzed_table):
    """Eight files: `around` of one lies within that of the next, `chain` shares its end with the next one's begin."""
    rows = """SELECT CAST(f AS int), CAST(IF(low, 100 - f, 100 + f) AS int), CAST(IF(low, f, f + 1) AS int),
            CAST(IF(low, 10 * f, 10 * f + 9) AS int)
        FROM (SELECT /*+ REPARTITION_BY_RANGE(8, f) */ id DIV 2 AS f, id % 2 = 0 AS low FROM range(16))"""
    name = make_analyzed_table("f int, around int, chain int, apart int", rows)
    assert len(metastore.files(spark, name)) == 8
    depths = {row["column_name"]: row["overlap_depth"] for row in metastore.layout(spark, name)}
    assert depths == pytest.approx({"f": 1, "around": 8, "chain": (2 + 6 * 3 + 2) / 8, "apart": 1})


def test_a_location_tells_the_same(spark, scattered):
    there = {row["column_name"]: row for row in metastore.layout(spark, scattered)}
    path = (
        spark.sql(f"SELECT input_file_name() FROM {scattered}")
        .first()[0]
        .removeprefix("file://")
        .partition("/data/")[0]
    )
    folder = path if "/data/" in path or scattered.startswith("ice.") else path.rpartition("/")[0]
    here = metastore.open(folder).layout()
    assert [row["column_name"] for row in here] == list(there)
    for row in here:
        expected = there[row["column_name"]]
        assert {**row, "advice": expected["advice"]} == pytest.approx(expected), row
    assert [row["column_name"] for row in metastore.open(folder).layout("user")] == ["user"]


def test_files_that_are_not_analyzed_are_no_reason_to_sort(spark, scattered):
    before = {row["column_name"]: row for row in metastore.layout(spark, scattered)}
    spark.sql(f"INSERT INTO {scattered} VALUES (-1, 'x', 0, null)")
    after = {row["column_name"]: row for row in metastore.layout(spark, scattered)}
    assert after == before


def test_what_is_advised_helps(spark, scattered):
    before = metastore.layout(spark, scattered, "kind")[0]
    advised = before["advice"]
    assert advised is not None
    with conf(spark, spark__databricks__delta__optimize__maxFileSize="20000"):
        spark.sql(advised)
    metastore.analyze(spark, scattered)
    after = metastore.layout(spark, scattered, "kind")[0]
    files = len(metastore.files(spark, scattered))
    assert after["files_per_lookup"] / files < before["files_per_lookup"] / FILES / 1.5, (advised, after)


@pytest.fixture(params=each_format("iceberg", "delta"))
def make_analyzed_table(request, spark):
    """Makes an analyzed table of rows."""
    name = {"iceberg": "ice.db.made", "delta": "made"}[request.param]

    def make(columns: str, rows: str, options: str = "") -> str:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} ({columns}) USING {request.param} {options}")
        spark.sql(f"INSERT INTO {name} {rows}")
        spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
        return name

    yield make
    spark.sql(f"DROP TABLE {name}")


def test_the_value_of_a_row_is_looked_up(spark, make_analyzed_table):
    # Half of the rows have one value, the least of each file, the others values of two files each.
    pair = f"id DIV {2 * ROWS}"
    value = f"IF(id % 2 = 0, 0, (1 + {pair}) * 1000 + id % {ROWS} DIV 20)"
    name = make_analyzed_table("skewed int", f"SELECT CAST({value} AS int) FROM range(0, {FILES * ROWS}, 1, {FILES})")
    assert len(metastore.files(spark, name)) == FILES
    layout = metastore.layout(spark, name)[0]
    assert layout["files_per_lookup"] == pytest.approx((FILES + 2) / 2, rel=0.1)
    assert layout["lookup_error"] == pytest.approx((FILES - 2) / 2 / 32**0.5, rel=0.1)


def test_values_that_are_few_are_all_looked_up(spark, scattered):
    assert metastore.layout(spark, scattered, "kind")[0]["lookup_error"] == 0


def test_nothing_is_advised_that_whatif_says_is_of_no_use(spark, make_analyzed_table):
    """One file a partition: rows are sorted within it alone."""
    columns = "id bigint, user int, kind int"
    rows = f"SELECT id, CAST(id * 7919 % 500 AS int), CAST(id % 8 AS int) FROM range(0, {4 * ROWS}, 1, 1)"
    name = make_analyzed_table(columns, rows, "PARTITIONED BY (kind)")
    assert len(metastore.files(spark, name)) == 8
    layouts = {row["column_name"]: row for row in metastore.layout(spark, name)}
    assert layouts["user"]["overlap_depth"] > 4
    assert [row["advice"] for row in layouts.values()] == [None, None, None]
    for column in layouts:
        query = f"SELECT * FROM {name} WHERE {column} = 7"
        (estimate,) = metastore.whatif(spark, query, sorted_by=column)
        assert estimate["files_read_now"] == estimate["files_read_then"], column


def test_what_is_advised_is_what_whatif_says(spark, make_analyzed_table):
    """Several files a partition: within each of them sorting helps, but for the column that makes the partitions."""
    columns = "user int, near int, kind int"
    values = f"CAST(id * 7919 % 40 AS int), CAST(id AS int), CAST(id DIV {2 * ROWS} AS int)"
    rows = f"SELECT {values} FROM range(0, {4 * ROWS}, 1, 8)"
    name = make_analyzed_table(
        columns, rows, "PARTITIONED BY (kind) TBLPROPERTIES ('write.distribution-mode' = 'none')"
    )
    assert len(metastore.files(spark, name)) == 8
    for row in metastore.layout(spark, name):
        query = f"SELECT * FROM {name} WHERE {row['column_name']} = 1"
        (estimate,) = metastore.whatif(spark, query, sorted_by=row["column_name"])
        assert (row["advice"] is not None) == (2 * estimate["files_read_then"] <= estimate["files_read_now"]), row
    assert metastore.layout(spark, name, "user")[0]["advice"] is not None
