"""Predicates without a rule for bounds: Spark evaluates them on all values of a file, where they are listed."""

from __future__ import annotations

import pytest

from planner.plans import check, conf, files_read, labels, physical, query_number

pytestmark = pytest.mark.spark

FILES = 8
COLUMNS = "file int, n int, s string, x double, m decimal(10,2), f boolean, d date, t timestamp, st struct<u: string>"
SHOWN = "file, n, s, m, f, d, st.u"
# The ends are in every file, so that no bound excludes one.
FIELDS = """
    SELECT {file} file, CAST(CASE WHEN i = 0 THEN 0 WHEN i = 1 THEN 1000 ELSE 100 * {file} + i END AS int) n,
    CASE WHEN i = 0 THEN '' WHEN i = 1 THEN 'zz' ELSE concat('Long texts are told apart beyond their first ',
      'sixty-four bytes, too: ', {file}, '-', i, IF({file} = 5, ' Match%me', '')) END s,
    CASE WHEN i = 0 THEN -1e9D WHEN i = 1 THEN 1e9D WHEN i = 2 AND {file} = 3 THEN -0.0D
      WHEN i = 3 AND {file} = 4 THEN double('NaN') WHEN i = 4 THEN null ELSE {file} + i / 10 END x,
    CAST(CASE WHEN i = 0 THEN -5 WHEN i = 1 THEN 5000 ELSE {file} * 10 + i * 0.25 END AS decimal(10,2)) m,
    IF({file} < 4, i % 2 = 0, null) f,
    CASE WHEN i = 0 THEN DATE'1990-01-01' WHEN i = 1 THEN DATE'2030-01-01'
      ELSE make_date(2000 + {file}, 1 + i % 12, 5) END d,
    CASE WHEN i = 0 THEN TIMESTAMP'1990-01-01 00:00:00' WHEN i = 1 THEN TIMESTAMP'2030-01-01 00:00:00'
      ELSE make_timestamp(2020, 1, 1 + {file}, i, 30, 0) END t,
    named_struct('u', IF(i = 7, null, concat(char(97 + {file}), i % 3))) st
    FROM (SELECT CAST(id AS int) i FROM range(12))
"""
PREDICATES = [
    "s LIKE '%Match%'",
    "s LIKE '%Match\\%me'",
    "s RLIKE ': [26]-'",
    "lower(s) LIKE '%: 3-4'",
    "length(s) > 75",
    "substring(s, 69, 1) = '4'",
    "reverse(s) = '9-1 :oot ,setyb ruof-ytxis tsrif rieht dnoyeb trapa dlot era stxet gnoL'",
    "s > 'Long texts are told apart beyond their first sixty-four bytes, too: 6' AND s < 'Lonh'",
    "s LIKE 'Long texts are told apart beyond their first sixty-four bytes, too: 2%'",
    "n % 100 = 77",
    "n % 1000 > 500 AND n % 1000 < 606",
    "n BETWEEN 350 AND 405",
    "n > 350 AND n < 405",
    "n <> 0 AND n <> 1000 AND n < 104",
    "(n = 305) IS TRUE",
    "(n > 700) IS NOT FALSE AND n < 1000",
    "CASE WHEN n > 400 THEN n = 502 ELSE n = 103 END",
    "x = 0",
    "x = 0 AND CAST(x AS string) LIKE '-%'",
    "CAST(x AS string) = '-0.0'",
    "isnan(x * 2)",
    "coalesce(x, 5D) = 2.7D",
    "x * 10 BETWEEN 61 AND 62",
    "m = 22.75D",
    "round(m) IN (31, 72)",
    "NOT f",
    "f IS NOT TRUE AND f IS NOT NULL",
    "coalesce(f, false)",
    "year(d) = 2003",
    "month(d) = 13",
    "date_format(d, 'yyyyMM') = '200605'",
    "date_trunc('DAY', t) = TIMESTAMP'2020-01-03 00:00:00'",
    "hour(t) = 30",
    "upper(st.u) = 'C1'",
    "concat(st.u, '!') IN ('a0!', 'h2!')",
    "upper(st.u) = 'X' OR lower(st.u) = 'b1'",
    "(lower(s) LIKE '%match%' AND f) OR (n % 1000 = 203 AND upper(st.u) = 'C0')",
    "NOT (s NOT LIKE '%Match%')",
]


@pytest.fixture(scope="module")
def listed(spark):
    name = "ice.db.evaluated_values"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg "
              "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')")  # fmt: skip
    for file in range(FILES):
        spark.sql(FIELDS.format(file=file)).coalesce(1).writeTo(name).append()
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("predicate", PREDICATES)
def test_only_files_with_a_matching_row_are_read(spark, listed, predicate):
    needed = query_number(spark, f"SELECT count(DISTINCT _file) FROM {listed} WHERE {predicate}")
    assert needed < FILES
    check(spark, f"SELECT {SHOWN} FROM {listed} WHERE {predicate}", [needed])


@pytest.mark.parametrize("predicate", ["rand() < 2", "s LIKE concat('%', st.u)", "CAST(s AS int) = 7", "n / n = 2"])
def test_what_values_cannot_tell_is_read(spark, listed, predicate):
    with conf(spark, spark__sql__ansi__enabled="false"):
        check(spark, f"SELECT {SHOWN} FROM {listed} WHERE {predicate}")


def test_an_error_of_the_expression_is_the_querys(spark, listed):
    with conf(spark, spark__sql__ansi__enabled="true"):
        for predicate in ("CAST(s AS int) = 7", "1000 / n = 7"):
            assert files_read_by_plan(spark, f"SELECT * FROM {listed} WHERE {predicate}") == FILES


def files_read_by_plan(spark, query: str) -> int:
    return int(labels(spark.sql(query))[0].split("-> ")[1].split()[0])


def test_explain_tells_the_list_and_the_conjuncts(spark, listed):
    query = f"SELECT * FROM {listed} WHERE n > 305 AND n < 395 AND s LIKE '%: 3-%'"
    rows = spark.sql("SELECT * FROM metastore.explain(:q) WHERE NOT kept", args={"q": query}).collect()
    assert len(rows) == FILES - 1
    assert {row.reason for row in rows} == {"SKIPPED_BY_VALUES"}
    assert all("values listed" in row.statistic for row in rows)


def test_the_setting_bounds_how_many_values_are_asked(spark, listed):
    query = f"SELECT {SHOWN} FROM {listed} WHERE s LIKE '%Match%'"
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="0"):
        check(spark, query, [FILES])
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="30"):
        assert 1 < files_read(check(spark, query))[0] < FILES, physical(spark.sql(query))


MATCHED_BY_ALL = {
    # a LIMIT that one file serves is told so only where all of its values make the predicate true
    "n % 1000 BETWEEN 0 AND 399 AND length(s) < 200": 4,
    "s NOT LIKE '%Match%'": 7,
    "lower(s) RLIKE '^($|z|l)'": 8,
    "coalesce(x, 7D) BETWEEN -1e9 AND 1e9": 7,
    "x IS NULL OR x * 2 < 1e10": 7,
    "x IS NULL OR CAST(x AS string) NOT LIKE '-0%'": 7,
    "coalesce(x + 1 <> 1, true)": 7,
    "f IS NULL": 4,
    "NOT (f IS NOT NULL)": 4,
    "upper(st.u) IS NULL OR upper(st.u) > 'A2'": 7,
    "m * 4 = CAST(m * 4 AS int)": 8,
    "s IN ('', 'zz')": 0,
    "m NOT IN (22.75, 31)": 6,
    "n IS NOT NULL AND m NOT IN (22.75)": 7,
}


@pytest.mark.parametrize("predicate", MATCHED_BY_ALL)
def test_a_limit_is_served_by_files_all_of_whose_values_match(spark, listed, predicate):
    counts = spark.sql(f"SELECT count_if({predicate}) m, count(*) n FROM {listed} GROUP BY file").collect()
    fully_matching = [row.n for row in counts if row.m == row.n]
    assert len(fully_matching) == MATCHED_BY_ALL[predicate]
    for limit in {1, sum(fully_matching)} if fully_matching else ():
        df = spark.sql(f"SELECT file, ({predicate}) IS TRUE ok FROM {listed} WHERE {predicate} LIMIT {limit}")
        rows = df.collect()
        assert len(rows) == limit
        assert all(row.ok for row in rows)
        assert files_read(df)[0] == (1 if limit == 1 else len(fully_matching)), labels(df)
    more = spark.sql(f"SELECT * FROM {listed} WHERE {predicate} LIMIT {sum(fully_matching) + 1}")
    assert "LIMIT" not in labels(more)[0]
