"""What the scans of a query that ran have read, from its executed plan: Spark has no public way to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

PHASES = ("parsing", "analysis", "optimization", "planning")


def files_read(frame: DataFrame) -> int:
    """Data files that the scans of a query opened, as Iceberg's readers and Spark's own counted them."""
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    return sum(_files(scan.metrics()) for scan in _scans(plan))


def planning(frame: DataFrame) -> int:
    """Milliseconds from the text of a query to its plan."""
    phases = frame._jdf.queryExecution().tracker().phases()  # noqa: SLF001
    return sum(phases.apply(name).durationMs() for name in PHASES if phases.contains(name))


def _files(metrics: Any) -> int:
    name = "numSplits" if metrics.contains("numSplits") else "numFiles"
    return int(metrics.apply(name).value())


def _scans(plan: Any) -> Iterator[Any]:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    elif kind in ("BatchScanExec", "FileSourceScanExec"):
        yield plan
    elif not kind.startswith("Reused"):
        for below in (plan.children(), plan.subqueries()):
            for i in range(below.size()):
                yield from _scans(below.apply(i))
