"""ANALYZE: finds what is missing, computes it in one Spark job, reduces it to table level, commits.

Executors import modules of this package: nothing here imports Spark, a store or a table format before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.pipeline.report import AnalyzeReport
    from metastore.spark_jobs.progress import Progress
    from metastore.statistics import Statistic


__all__ = ["analyze_table"]


def analyze_table(  # noqa: PLR0913 - the parts of a statement
    spark: SparkSession,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    all_columns: bool = False,
    noscan: bool = False,
    partition: Mapping[str, Any] | None = None,
    partition_columns: Sequence[str] = (),
    progress: bool | Progress = False,
    statistics: Sequence[Statistic] = (),
    ranks: bool | Sequence[str] = False,
    distribution: bool | Sequence[str] = False,
    frequencies: str | None = None,
    repair: bool = False,
) -> AnalyzeReport:
    """Analyze a table as an `ANALYZE TABLE` statement says."""
    from metastore import settings  # noqa: PLC0415 - see above
    from metastore.pipeline.request import AnalyzeStatement  # noqa: PLC0415 - see above
    from metastore.pipeline.rounds import run_statement  # noqa: PLC0415 - see above

    asked = {} if frequencies is None else {"spark.metastore.frequencies.algorithm": frequencies}
    known = settings.resolve(spark, asked)  # one that has no value it can have is told before anything is read
    depth = "files" if noscan else "full" if all_columns or columns is not None else "footer"
    wanted = None if columns is None else tuple(columns)
    statement = AnalyzeStatement(
        *(table, wanted, dict(partition or {}), depth, {one.setting.key: one.value for one in known}),
        statistics=tuple(statistics),
        partition_columns=tuple(partition_columns),
        ranks=ranks if isinstance(ranks, bool) else tuple(ranks),
        distribution=distribution if isinstance(distribution, bool) else tuple(distribution),
        repair=repair,
    )
    return run_statement(spark, statement, progress)
