"""Every case in tests/cases/tables, on the rules alone and on real tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import metastore
from metastore.errors import InvalidArgument
from oracle import cases, reading, tables
from oracle.verdicts import Queries, Rules
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]
TABLES = cases.tables_of_session()
CASES = list(cases.load())
NAMES = [case.name for case in CASES]


def location(spark: SparkSession, table: str) -> Path:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return Path(next(r.data_type for r in rows if r.col_name == "Location").removeprefix("file:"))


@pytest.fixture(scope="module")
def make_table(spark: SparkSession) -> Iterator[Callable[[str], tuple[cases.Case, str]]]:
    """Gives the table of a case, analyzed as the case says."""
    tables_made: dict[str, str] = {}

    def make(name: str) -> tuple[cases.Case, str]:
        number, case = next((i, c) for i, c in enumerate(CASES) if c.name == name)
        if name not in tables_made:
            table = tables_made[name] = TABLES.name.format(number)

            def analyze(columns: Sequence[str] | None) -> None:
                metastore.analyze(spark, table, columns=columns, progress=False)

            with plans.conf(spark, **case.conf):
                cases.create(spark, case, table, analyze)
        return case, tables_made[name]

    with plans.conf(spark, **TABLES.conf):
        yield make
    for table in tables_made.values():
        spark.sql(f"DROP TABLE IF EXISTS {table}")


def numbered(spark: SparkSession, table: str) -> dict[str, int]:
    rows = spark.sql(f"SELECT DISTINCT {TABLES.file} AS path, file_no FROM {table}").collect()
    return {row["path"]: row["file_no"] for row in rows}


def observed(spark: SparkSession, table: str) -> tables.Subject:
    root = None if TABLES is cases.ICEBERG else location(spark, table)
    return tables.observe(spark, "case", table, TABLES.file, root=root)


def by_conf(case: cases.Case) -> Iterator[tuple[dict[str, str], list[dict]]]:
    """Yields the predicates of a case that run under the same settings, with these."""
    groups: dict[tuple, list[dict]] = {}
    for predicate in case.predicates:
        groups.setdefault(tuple({**case.conf, **predicate.get("conf", {})}.items()), []).append(predicate)
    yield from ((dict(conf), predicates) for conf, predicates in groups.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_query_reads_what_it_needs_and_skips_what_bounds_exclude(spark, make_table, name):
    case, table = make_table(name)
    numbers = numbered(spark, table)
    subject = observed(spark, table)
    for conf, group in by_conf(case):
        with plans.conf(spark, **conf):
            for predicate, files in zip(
                group, Queries(spark, subject).kept_files([p["where"] for p in group]), strict=True
            ):
                kept_numbers = {numbers[f] for f in files if f in numbers}
                assert set(predicate["read"]) <= kept_numbers, f"{predicate} reads {kept_numbers}"
                assert not set(predicate["skip"]) & kept_numbers, f"{predicate} reads {kept_numbers}"


def rows_in_memory(spark: SparkSession, conditions: Sequence[str]) -> list[list[tuple[int, str]]]:
    """Returns the rows of the view `held` of each condition, in one query where a condition may be a value."""
    values = [where for where in conditions if "SELECT" not in where]
    listed = "".join(f", ({where}) AS is_{position}" for position, where in enumerate(values))
    rows = spark.sql(f"SELECT file_no, to_json(struct(*)){listed} FROM held").collect()
    rows_by_condition = {
        where: [tuple(row[:2]) for row in rows if row[2 + position]] for position, where in enumerate(values)
    }
    for where in set(conditions).difference(values):
        rows_by_condition[where] = list(
            map(tuple, spark.sql(f"SELECT file_no, to_json(struct(*)) FROM held WHERE {where}").collect())
        )
    return [rows_by_condition[where] for where in conditions]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_in_memory_and_the_case_names_their_files(spark, make_table, name):
    case, table = make_table(name)
    spark.table(table).localCheckpoint().createOrReplaceTempView("held")
    for conf, group in by_conf(case):
        with plans.conf(spark, **conf):
            for predicate, expected in zip(
                group, rows_in_memory(spark, [predicate["where"] for predicate in group]), strict=True
            ):
                rows = spark.sql(
                    f"SELECT file_no, to_json(struct(*)) FROM {table} WHERE {predicate['where']}"
                ).collect()
                assert sorted({number for number, _ in expected}) == predicate["read"], predicate
                assert sorted(map(tuple, rows), key=str) == sorted(expected, key=str), predicate


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in CASES if case.queries])
def test_queries_return_their_rows(spark, make_table, name):
    case, table = make_table(name)
    with plans.conf(spark, **case.conf):
        for query in case.queries:
            answer = [list(row) for row in spark.sql(query["sql"].format(table=table)).collect()]
            assert sorted(answer, key=str) == sorted(query["rows"], key=str), query["sql"]


@pytest.mark.parametrize("name", [case.name for case in CASES if case.plain and case.analyze is None])
def test_the_rules_alone_agree(spark, make_table, name):
    case, table = make_table(name)
    numbers = numbered(spark, table)
    subject = observed(spark, table)
    rules = Rules(spark, subject)
    for predicate in case.predicates:
        if "SELECT" in predicate["where"]:
            continue
        with plans.conf(spark, **case.conf, **predicate.get("conf", {})):
            kept_numbers = {numbers[f] for f in rules.kept_files([predicate["where"]])[0]}
        assert set(predicate["read"]) <= kept_numbers, predicate["where"]
        assert not set(predicate["skip"]) & kept_numbers, predicate["where"]


@pytest.mark.slow
def test_other_engines_lose_no_row_either(spark, make_table):
    """`prune` keeps files that a case skips only where the case says so: most constants there are computed.

    Of a location it knows the files that were analyzed: tables that changed since are asked by tests/engines.
    """
    read_files, only_spark, lost = set(), set(), []
    for case, table in map(make_table, NAMES):
        numbers = {str(reading.local(path)): number for path, number in numbered(spark, table).items()}
        for settings, group in by_conf(case):
            zone = settings.get("spark.sql.session.timeZone", spark.conf.get("spark.sql.session.timeZone"))
            statistics = metastore.open(str(location(spark, table)), zone=zone)
            for predicate in group if statistics.snapshots() and statistics.snapshots()[-1]["current"] else ():
                kept_numbers = {numbers[path] for path in pruned(statistics, predicate["where"]) if path in numbers}
                lost += [] if set(predicate["read"]) <= kept_numbers else [predicate["where"]]
                read_files |= {predicate["where"]} if set(predicate["skip"]) & kept_numbers else set()
                only_spark |= {predicate["where"]} if predicate.get("only_spark") else set()
    assert lost == []
    if TABLES is cases.ICEBERG:  # the others have fewer cases
        assert read_files == only_spark


def pruned(statistics: metastore.Statistics, where: str) -> Iterable[str]:
    """The data files that are left; all of them where the filter is none that other engines' parser reads."""
    try:
        return statistics.prune(where)
    except InvalidArgument:
        return [verdict.path for verdict in statistics.prune("TRUE").verdicts]


@pytest.mark.slow
def test_without_statistics_nothing_is_skipped(spark, make_table):
    """Last in this module: it deletes the statistics."""
    for case, table in map(make_table, NAMES):
        shutil.rmtree(location(spark, table) / "_metastore")
        subject = observed(spark, table)
        conditions = [p["where"] for p in case.predicates if p["skip"]]
        with plans.conf(spark, **{**case.conf, "spark.sql.ansi.enabled": "false"}):
            for where, skipped in zip(conditions, Queries(spark, subject).skipped_files(conditions), strict=True):
                assert not skipped, where
