"""Metrics of a query that ran, from its executed plan: Spark has no public way to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore import jvm_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


_SCANS = ("BatchScanExec", "FileSourceScanExec", "CometNativeScanExec")


def iterate_plan_nodes(frame: DataFrame) -> Iterator[Any]:
    """Iterate over the nodes of the executed plan of a query of a classic session, as objects of its JVM.

    Nodes of sub-queries are included, those of exchanges that are read a second time are not.
    """
    yield from _nodes(jvm_session.get_executed_plan(frame))


def find_scan_nodes(frame: DataFrame) -> list[Any]:
    """Find the nodes that read tables."""
    return [node for node in iterate_plan_nodes(frame) if node_class(node) in _SCANS]


def node_class(node: Any) -> str:
    """Return the class of a node, without its package."""
    return str(node.getClass().getSimpleName())


def read_scan_metrics(scan: Any) -> dict[str, int]:
    """Read the SQL metrics of a scan that ran: the counts of the format's readers and of Spark."""
    metrics = {}
    entries = scan.metrics().iterator()
    while entries.hasNext():
        entry = entries.next()
        metrics[entry._1()] = int(entry._2().value())  # noqa: SLF001 - the parts of a Scala tuple
    return metrics


def count_files_read(frame: DataFrame) -> list[int]:
    """Count the data files that each scan of a query opened, by Iceberg's metrics or Spark's own."""
    counts = []
    for scan in find_scan_nodes(frame):
        metrics = read_scan_metrics(scan)
        counts.append(metrics["numSplits"] if "numSplits" in metrics else metrics["numFiles"])
    return counts


def _nodes(plan: Any) -> Iterator[Any]:
    name = node_class(plan)
    if name == "AdaptiveSparkPlanExec":
        yield from _nodes(plan.executedPlan())
    elif name.endswith("QueryStageExec"):
        yield from _nodes(plan.plan())
    elif name != "ReusedExchangeExec":
        yield plan
        yield from _nodes_of_all(plan.children())
        yield from _nodes_of_all(plan.subqueries())


def _nodes_of_all(plans: Any) -> Iterator[Any]:
    """Yield the nodes of a Scala sequence of plans."""
    for index in range(plans.size()):
        yield from _nodes(plans.apply(index))
