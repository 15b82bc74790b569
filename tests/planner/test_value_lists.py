"""Single values of keys in no order: every file's bounds hold them, lists of values and bloom filters tell.

Statistics take a tenth of a data file at most, so each row has a long text, too long for a list of values.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.plans import check, conf, files_read, labels

pytestmark = pytest.mark.spark

FILES = 8
COLUMNS = "k bigint, s string, x double, n decimal(30,4), few int, st struct<u: string>, pad string"
SHOWN = "k, s, n, few, st.u, isnan(x)"  # NaN is not equal to itself in Python
ROW = """
    pmod(hash(id), {spread}) k, concat('k', pmod(hash(id), {spread})) s,
    IF(id % 97 = 0, double('NaN'), pmod(hash(id), {spread}) / 4) x,
    cast(pmod(hash(id), {spread}) AS decimal(30,4)) n, cast(id % 5 AS int) few,
    named_struct('u', IF(id % 89 = 0, null, concat('u', pmod(hash(id), {spread})))) st,
    array_join(transform(sequence(1, {width}), i -> sha2(cast(id * i AS string), 512)), '') pad
"""


def written(spark, new_table, rows, spread, width):
    """A table of some files, each with rows of the whole range; two rows mark the ends, so that bounds say nothing."""
    name = new_table(COLUMNS)
    for file in range(FILES):
        part = spark.range(file * rows, (file + 1) * rows).selectExpr(*_fields(spread, width))
        ends = spark.sql("SELECT -1L k, '' s, -1.0D x, -1.0000BD n, 0 few, named_struct('u', '') st, '' pad UNION ALL "
                         "SELECT 1099511627776L, 'z', 1e300D, 1e20, 0, named_struct('u', 'z'), 'z'")  # fmt: skip
        part.union(ends).coalesce(1).writeTo(name).append()
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    return name


def _fields(spread, width):
    depth, fields, start = 0, [], 0
    text = ROW.format(spread=spread, width=width)
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            fields.append(text[start:position])
            start = position + 1
    return [*fields, text[start:]]


@pytest.fixture(scope="module", params=[(200, 50_000, 40), (4_000, 1_000_000, 9)], ids=["lists", "filters"])
def unsorted(spark, request):
    created = []

    def new_table(columns):
        name = f"ice.db.value_lists_{request.param[0]}"
        spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg "
                  "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')")  # fmt: skip
        created.append(name)
        return name

    yield written(spark, new_table, *request.param)
    for name in created:
        spark.sql(f"DROP TABLE {name}")


def one_of(spark, table, column):
    """A value of one row of each of two files, and in how many files each is."""
    rows = spark.sql(
        f"SELECT {column} v, count(DISTINCT _file) files FROM {table} "
        f"WHERE k BETWEEN 0 AND 1000000 AND {column} = {column} GROUP BY 1 ORDER BY files, hash(v) LIMIT 2"
    )
    return [(row.v, row.files) for row in rows.collect()]


def literal(value):
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    return f"'{value}'" if isinstance(value, str) else f"{value}D" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("column", ["k", "s", "x", "n", "st.u"])
def test_only_the_files_that_hold_the_value_are_read(spark, unsorted, column):
    (first_value, files), (other, more) = one_of(spark, unsorted, column)
    read = []
    for where, least in (
        (f"{column} = {literal(first_value)}", files),
        (f"{column} IN ({literal(first_value)}, {literal(other)})", max(files, more)),
        (f"{column} <=> {literal(first_value)} OR few = 77", files),
        (f"few = 2 AND {column} = {literal(first_value)}", 0),
    ):
        read_files = files_read(check(spark, f"SELECT {SHOWN} FROM {unsorted} WHERE {where}"))[0]
        assert read_files >= least
        read.append(read_files)
    assert read[0] <= files + 1
    assert read[1] <= files + more + 1
    assert read[2] <= files + 1


def test_values_that_are_nowhere(spark, unsorted):
    absent = ("k = 123456789", "s = 'nothing'", "x = 0.3D", "n = 7.5", "st.u IN ('a', 'b')", "few = 3 AND k = 77777777")
    read = [files_read(check(spark, f"SELECT {SHOWN} FROM {unsorted} WHERE {where}"))[0] for where in absent]
    assert sum(read) <= 2  # a bloom filter may err


@pytest.mark.slow
def test_nan_null_and_negations(spark, unsorted):
    for where in ("x = double('NaN')", "x IN (double('NaN'), 0.3D)", "st.u IS NULL", "st.u <=> null", "NOT (k = 5)",
                  "k <> 5", "k NOT IN (5, 6)", "NOT (k = 5 OR s = 'k5')", "few IN (1, 77)"):  # fmt: skip
        check(spark, f"SELECT {SHOWN} FROM {unsorted} WHERE {where}")


def test_explain_names_the_list(spark, unsorted):
    query = f"SELECT * FROM {unsorted} WHERE k = 123456789"
    reasons = spark.sql("SELECT DISTINCT reason FROM metastore.explain(:q)", args={"q": query}).collect()
    assert [row.reason for row in reasons if row.reason.startswith("SKIPPED")] == ["SKIPPED_BY_VALUES"]
    assert labels(spark.sql(query))[0].startswith(f"{FILES} -> ")


@pytest.mark.slow
def test_deleted_rows_and_later_files_stay_right(spark, unsorted):
    (value, _), _ = one_of(spark, unsorted, "k")
    copy = f"{unsorted}_copy"
    spark.sql(f"CREATE TABLE {copy} USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read') "
              f"AS SELECT * FROM {unsorted}")  # fmt: skip
    try:
        spark.sql(f"ANALYZE TABLE {copy} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
        spark.sql(f"DELETE FROM {copy} WHERE k = {value}")
        assert check(spark, f"SELECT * FROM {copy} WHERE k = {value}").count() == 0
        spark.sql(f"INSERT INTO {copy} SELECT * FROM {unsorted} WHERE k = {value}")
        assert check(spark, f"SELECT * FROM {copy} WHERE k = {value}").count() > 0
        with conf(spark, spark__metastore__pruning__enabled=False):
            assert spark.sql(f"SELECT * FROM {copy} WHERE k = {value}").count() > 0
    finally:
        spark.sql(f"DROP TABLE {copy}")
