"""Spark's own answers on the rows: per file, whether any row satisfies each predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.adapters.spark_errors import SPARK_JOB_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

BATCH = 100
VIEW = "rows_of_the_subject"
# Tables are small and predicates many: compiling them would take a hundred times as long as running them.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def matching_files(spark: SparkSession, subject: Subject, predicates: Sequence[str]) -> list[frozenset[str] | None]:
    """Returns for every predicate the files that hold a row for which it is true.

    None stands for a predicate that Spark refuses or that ends with a run-time error: it has no truth.
    The rows are held in memory first: no statistics of any format stand between them and the answer.
    """
    rows = spark.sql(f"SELECT {subject.file} AS `the file`, * FROM {subject.relation}")
    rows.coalesce(1).localCheckpoint().createOrReplaceTempView(VIEW)
    before = {key: spark.conf.get(key) for key in INTERPRETED}
    try:
        for key, value in INTERPRETED.items():
            spark.conf.set(key, value)
        return _all(spark, predicates)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def _all(spark: SparkSession, predicates: Sequence[str]) -> list[frozenset[str] | None]:
    answers: list[frozenset[str] | None] = []
    for start in range(0, len(predicates), BATCH):
        answers += _batch(spark, predicates[start : start + BATCH])
    return answers


def _batch(spark: SparkSession, predicates: Sequence[str]) -> list[frozenset[str] | None]:
    flags = ", ".join(f"max(CASE WHEN {p} THEN 1 ELSE 0 END)" for p in predicates)
    try:
        rows = spark.sql(f"SELECT `the file`, {flags} FROM {VIEW} GROUP BY 1").collect()
    except SPARK_JOB_ERRORS:  # Spark 3.5 and 4 raise different ones
        if len(predicates) == 1:
            return [None]
        half = len(predicates) // 2
        return _batch(spark, predicates[:half]) + _batch(spark, predicates[half:])
    return [frozenset(row[0] for row in rows if row[i + 1]) for i in range(len(predicates))]
