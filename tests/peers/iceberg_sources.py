"""Iceberg's suites, compiled from a checkout of its sources that the user names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from environment import HERE, CompiledSuites, EnvironmentMissing, compile_java, fetch_locked, peers_cache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from environment import Environment

SPARK = Path("spark") / "v4.1"
JAVA = (
    *(Path(module) / "src" / "test" / "java" for module in ("api", "core", "data", "orc", "parquet", "hive-metastore")),
    *(Path(module) / "src" / "testFixtures" / "java" for module in ("parquet", "open-api")),
    SPARK / "spark" / "src" / "test" / "java",
    SPARK / "spark-extensions" / "src" / "test" / "java",
)
"""Folders of the sources of the suites and of what they use."""
RESOURCES = (
    Path("hive-metastore") / "src" / "test" / "resources",
    Path("core") / "src" / "test" / "resources",
    SPARK / "spark" / "src" / "test" / "resources",
)
PROPERTIES = {
    "spark.sql.shuffle.partitions": "4",  # as the sessions of Iceberg's suites with extensions have it
    "spark.metastore.analyze.auto": "off",  # the harness analyzes the tables that are read
}
BY_NAME = ("org.apache.iceberg.spark.DummyMetricsServlet",)
"""Classes that no import names."""
SHADED = re.compile(
    r"(?<![\w.])(?=(?:org\.apache\.(?:arrow|avro|datasketches|hc|orc|parquet)|org\.roaringbitmap"
    r"|com\.(?:fasterxml|github\.benmanes|google\.errorprone)|io\.(?:airlift|netty))\.)"
)
"""Packages that the jar which Iceberg publishes for Spark has below a package of its own."""
UNWRAPPED = "org.metastore.peers.IcebergScan.unwrap(scanRelation.scan())"
REPLACEMENTS = {
    # Their test sessions list Iceberg's extension alone.
    "IcebergSparkSessionExtensions.class.getName()": (
        'IcebergSparkSessionExtensions.class.getName() + "," + System.getProperty("peers.extensions", "")'
    ),
    # A run with us and a run without us are to draw the same numbers.
    "ThreadLocalRandom.current()": "new java.util.Random(7)",
    # Joins have filters of ours, too; the rows are compared only after this.
    "as(errorMessage).isEqualTo(expectedFilterCount)": "as(errorMessage).isGreaterThanOrEqualTo(expectedFilterCount)",
    # The filters that Iceberg's own scan has, whether or not a stand-in of ours is before it.
    "scanRelation.scan() instanceof SparkBatchQueryScan": f"{UNWRAPPED} instanceof SparkBatchQueryScan",
    "(SparkBatchQueryScan) scanRelation.scan()": f"(SparkBatchQueryScan) {UNWRAPPED}",
}

ASSERTED_EXPLAIN = re.compile(r"assertThat\(explainContainsPushDownAggregates\)[^;]*;")
"""Which aggregates Iceberg answers itself: ours are others, and the rows are compared only after this."""


def compile_suites(checkout: Path, classes: Iterable[str], environment: Environment) -> CompiledSuites:
    """Returns the compiled classes of suites and of all that they need of the sources beside them.

    Raises:
        EnvironmentMissing: The folder is no checkout of Iceberg, or has no such suite.
    """
    copies = _copy_sources(checkout)
    suites = [copies / f"{name.replace('.', '/')}.java" for name in (*classes, *BY_NAME)]
    missing = [file.stem for file in suites if not file.exists()]
    if missing:
        raise EnvironmentMissing(f"the checkout has no {', '.join(missing)}")
    needed = fetch_locked(HERE / "iceberg.lock")
    spark = environment.pyspark / "jars" / "*"
    sources = [*sorted((HERE / "harness").glob("*.java")), *suites]
    compiled = compile_java(sources, copies, [environment.classes, *needed, *environment.jars, spark], peers_cache())
    resources = [checkout / folder for folder in RESOURCES]
    return CompiledSuites(class_path=(compiled, *needed, *resources), properties=PROPERTIES)


def _copy_sources(checkout: Path) -> Path:
    """Writes the sources as they are compiled, in the folders of their packages."""
    if not (checkout / SPARK).exists():
        raise EnvironmentMissing(f"{checkout} has no {SPARK}: it is no checkout of Iceberg")
    copies = peers_cache() / "iceberg-sources"
    shutil.rmtree(copies, ignore_errors=True)
    for folder in JAVA:
        for file in (checkout / folder).rglob("*.java"):
            copy = copies / file.relative_to(checkout / folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(rewrite(file.read_text("utf-8")), "utf-8")
    return copies


def rewrite(text: str) -> str:
    """Returns a source as it is compiled against the jar for Spark, with the extensions of a run."""
    text = SHADED.sub("org.apache.iceberg.shaded.", text)
    text = ASSERTED_EXPLAIN.sub("", text)
    for theirs, ours in REPLACEMENTS.items():
        text = text.replace(theirs, ours)
    return text
