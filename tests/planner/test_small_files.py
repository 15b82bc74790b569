"""Keys in no order in small files, without lists of the table: bloom filters find the files, whatever else is kept."""

from __future__ import annotations

import pytest

from planner.plans import check, files_read

pytestmark = pytest.mark.spark

FILES, ROWS = 24, 5_000
LISTED = 3_000
"""Values of a file that are listed, all of them, in a table of up to 100 MB."""
COLUMNS = "id bigint, key string, number bigint, amount double, {more}"
MORE = 6
FOUND = (
    "number = xxhash64({first}L)", "key = md5('{first}')",
    "number IN (xxhash64({first}L), xxhash64({second}L))", "key IN (md5('{first}'), md5('{second}'), 'none')",
    "key = md5('{first}') AND number = xxhash64({first}L)", "key = md5('{first}') OR number = xxhash64({second}L)",
)  # fmt: skip
NOWHERE = ("number = xxhash64(-1L)", "key = md5('none')", "key = md5('{first}') AND number = xxhash64({second}L)")
ERRING = 2
"""Files that a filter may keep in vain: each errs for one value in thirty at most."""


@pytest.fixture(scope="module")
def small(spark):
    name = "ice.db.small_files"
    more = ", ".join(f"c{i} int" for i in range(MORE))
    properties = "'write.distribution-mode' = 'none', 'write.metadata.metrics.default' = 'none'"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS.format(more=more)}) USING iceberg TBLPROPERTIES ({properties})")
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id", "md5(CAST(id AS STRING)) AS key", "xxhash64(id) AS number", "rint(xxhash64(id, 1) / 8) AS amount",
        *(f"CAST(id + pmod(hash(id, {i}), 5000) AS INT) AS c{i}" for i in range(MORE)),
    ).writeTo(name).append()  # fmt: skip
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("where", [*FOUND, *NOWHERE])
@pytest.mark.parametrize(("first", "second"), [(7, 40_000), (25_001, 25_000), (47_999, 0)])
def test_nearly_only_the_files_that_hold_it_are_read(spark, small, where, first, second):
    condition = where.format(first=first, second=second)
    holding = spark.sql(f"SELECT count(DISTINCT _file) FROM {small} WHERE {condition}").collect()[0][0]
    read = sum(files_read(check(spark, f"SELECT id, key FROM {small} WHERE {condition}")))
    assert holding <= read <= holding + ERRING


def test_lists_of_thousands_of_values_are_whole_in_small_files(spark, tmp_path):
    amount = "cast(pmod(xxhash64(id), 100000000) as decimal(20,2)) amount"
    rows = spark.range(0, 4 * LISTED, 1, 4)
    rows.selectExpr("xxhash64(id) number", "md5(string(id)) key", amount).write.parquet(str(tmp_path / "t"))
    name = f"parquet.`{tmp_path / 't'}`"
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    list_kinds = spark.sql(f"SELECT DISTINCT frequencies_kept FROM metastore.columns('{name}')").collect()
    assert [row[0] for row in list_kinds] == ["complete"]
    for where in ("number = xxhash64(7L)", "key LIKE '%abcde%'", "pmod(number, 9999) = 17", "amount % 30011 = 5"):
        query = f"FROM {name} WHERE {where}"
        holding = spark.sql(f"SELECT count(DISTINCT _metadata.file_path) {query}").collect()[0][0]
        assert holding < 4
        check(spark, f"SELECT * {query}", [holding])
