"""What a query that ran has done, from its executed plan: Spark has no public way to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore import jvm_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


_SCANS = ("BatchScanExec", "FileSourceScanExec", "CometNativeScanExec")


def iterate_plan_nodes(frame: DataFrame) -> Iterator[Any]:
    """The nodes of the executed plan of a query of a classic session, as objects of its JVM.

    Those of sub-queries are among them, those of exchanges that are read a second time are not.
    """
    yield from _nodes(jvm_session.get_executed_plan(frame))


def find_scan_nodes(frame: DataFrame) -> list[Any]:
    """The nodes that read tables."""
    return [node for node in iterate_plan_nodes(frame) if node_class(node) in _SCANS]


def node_class(node: Any) -> str:
    """The class of a node, without its package."""
    return str(node.getClass().getSimpleName())


def read_scan_metrics(scan: Any) -> dict[str, int]:
    """The SQL metrics of a scan that ran: what the format's readers and Spark counted."""
    found, values = scan.metrics().iterator(), {}
    while found.hasNext():
        entry = found.next()
        values[entry._1()] = int(entry._2().value())  # noqa: SLF001 - the parts of a Scala tuple
    return values


def count_files_read(frame: DataFrame) -> list[int]:
    """Data files that each scan of a query opened, as Iceberg's metrics and Spark's own count them."""
    counted = (read_scan_metrics(scan) for scan in find_scan_nodes(frame))
    return [found["numSplits"] if "numSplits" in found else found["numFiles"] for found in counted]


def _nodes(plan: Any) -> Iterator[Any]:
    if node_class(plan) == "AdaptiveSparkPlanExec":
        yield from _nodes(plan.executedPlan())
    elif node_class(plan).endswith("QueryStageExec"):
        yield from _nodes(plan.plan())
    elif node_class(plan) != "ReusedExchangeExec":
        yield plan
        for below in (plan.children(), plan.subqueries()):
            for place in range(below.size()):
                yield from _nodes(below.apply(place))
