"""Delta's suites, compiled from a checkout of its sources that the user names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from environment import CompiledSuites, EnvironmentMissing, compile_scala, peers_cache

from metastore import jars

if TYPE_CHECKING:
    from collections.abc import Iterable

    from environment import Environment

TESTS = Path("spark") / "src" / "test"
FOLDERS = ("scala", "scala-shims/spark-4.1", "scala-shims/spark-4.0-4.1", "scala-shims/spark-4.1-4.2")
"""Folders of Scala sources that Delta's build compiles for Spark 4.1."""
DEFINITION = re.compile(r"\b(?:class|trait|object|type)\s+([A-Z]\w*)")
IDENTIFIER = re.compile(r"\b[A-Z]\w*")
TEXTS_AND_COMMENTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
EXTENSION = "classOf[DeltaSparkSessionExtension].getName)"
OUR_EXTENSION = (
    'classOf[DeltaSparkSessionExtension].getName + sys.props.get("peers.extensions").map("," + _).getOrElse(""))'
)
"""Delta's test sessions list their own extension alone: ours are added to the copy that is compiled."""
PROPERTIES = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "5",
    "delta.log.cacheSize": "3",
    "spark.databricks.delta.delta.log.cacheSize": "3",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "5",
}
"""As Delta's own build has them."""


def compile_suites(checkout: Path, classes: Iterable[str], environment: Environment) -> CompiledSuites:
    """Returns the compiled classes of suites and of all that they need of the sources beside them.

    Raises:
        EnvironmentMissing: The folder is no checkout of Delta, or has no such suite.
    """
    sources = _read_sources(checkout)
    selected = _closure(sources, [name.rsplit(".", 1)[1] for name in classes])
    copies = [_copy(checkout, file, sources[file]) for file in sorted(selected)]
    spark = environment.pyspark / "jars" / "*"
    delta = jars.fetch_all("delta-4.1")
    compiled = compile_scala(copies, [spark, *environment.jars, *delta], peers_cache())
    return CompiledSuites(class_path=(compiled, *delta), properties=PROPERTIES)


def _read_sources(checkout: Path) -> dict[Path, str]:
    files = [file for folder in FOLDERS for file in (checkout / TESTS / folder).rglob("*.scala")]
    if not files:
        raise EnvironmentMissing(f"{checkout} has no {TESTS}: it is no checkout of Delta")
    return {file: file.read_text("utf-8") for file in files}


def _closure(sources: dict[Path, str], names: list[str]) -> set[Path]:
    """Files that define the names, and those that define what these files name, and so on."""
    definitions = _definitions(sources)
    missing = [name for name in names if name not in definitions]
    if missing:
        raise EnvironmentMissing(f"the checkout has no {', '.join(missing)}")
    selected: set[Path] = set()
    pending = [file for name in names for file in definitions[name]]
    while pending:
        file = pending.pop()
        if file not in selected:
            selected.add(file)
            pending += _used_files(file, sources[file], definitions)
    return selected


def _definitions(sources: dict[Path, str]) -> dict[str, list[Path]]:
    definitions: dict[str, list[Path]] = {}
    for file, text in sources.items():
        for name in DEFINITION.findall(text):
            definitions.setdefault(name, []).append(file)
    return definitions


def _used_files(file: Path, text: str, definitions: dict[str, list[Path]]) -> list[Path]:
    """Returns the files that define what a file names."""
    names = set(IDENTIFIER.findall(TEXTS_AND_COMMENTS.sub("", text)))
    return [used for name in names for used in _nearest(definitions.get(name, []), file)]


def _nearest(candidates: list[Path], file: Path) -> list[Path]:
    """Returns the definition of the same package where a name is defined more than once."""
    beside = [candidate for candidate in candidates if candidate.parent == file.parent]
    return beside or candidates


def _copy(checkout: Path, file: Path, text: str) -> Path:
    copy = peers_cache() / "delta-sources" / file.relative_to(checkout / TESTS)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text.replace(EXTENSION, OUR_EXTENSION), "utf-8")
    return copy
