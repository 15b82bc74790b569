"""One run of one suite, with us or without us: the JVM that runs it, and what it wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from environment import ROOT, join_paths, peers_cache, say

if TYPE_CHECKING:
    from pathlib import Path

    from environment import CompiledSuites, Environment

JAVA_OPTIONS = (
    "-Xmx2g",
    "-Xss8m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=512m",
)
RUNNER_EXITS = (0, 1)
"""Of the runners: all tests passed, or not all."""
OPEN_PACKAGES = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io"),
    *("java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent"),
    *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch"),
    *("java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
"""As Spark's `JavaModuleOptions` has them."""
TEST_PROPERTIES = {
    "spark.testing": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.unsafe.exceptionOnMemoryLeak": "true",
    "derby.system.durability": "test",
    "io.netty.tryReflectionSetAccessible": "true",
    "jdk.reflect.useDirectMethodHandle": "false",
    "log4j2.configurationFile": "log4j2.properties",
    "java.awt.headless": "true",
}
OUR_EXTENSIONS = "org.metastore.spark.MetastoreExtensions,org.metastore.peers.HarnessExtensions"
OUR_PROPERTIES = {
    "spark.sql.extensions": OUR_EXTENSIONS,
    "peers.extensions": OUR_EXTENSIONS,  # of suites that list their own
    "spark.sql.queryExecutionListeners": "org.metastore.peers.LabelCounter",
    "spark.metastore.analyze.formats": "parquet,delta,iceberg,hudi",
    "spark.metastore.analyze.auto": "wait",
    "spark.metastore.pruning.rowLevel": "all",
    "spark.metastore.planning.timeout": "60s",  # a slow machine is to act as a fast one
}

COST_BASED_OPTIMIZER = {
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
}
"""Spark's own settings that our extension switches on."""

MODES = {
    "on": "with us",
    "off": "without us",
    "cbo": "without us, with Spark's cost-based optimizer",
}
"""Folders of the results of a suite, and how people are told of them."""


@dataclass(frozen=True)
class Suite:
    """A suite of `suites.json`.

    Attributes:
        name: By which the command knows it.
        class_name: Its class.
        tests: Names of the tests that are run; all of them where there is none.
        sources: `delta` or `iceberg` where it is compiled from a checkout of Delta or Iceberg.
        calls: Numbers of the parameters with which JUnit runs each test, joined by commas; all where it is empty.
    """

    name: str
    class_name: str
    tests: tuple[str, ...] = ()
    sources: str = ""
    calls: str = ""

    @classmethod
    def parse(cls, entry: dict[str, Any]) -> Suite:
        """Reads an entry of `suites.json`."""
        return cls(
            name=entry["name"],
            class_name=entry["suite"],
            tests=tuple(entry.get("tests", ())),
            sources=entry.get("sources", ""),
            calls=entry.get("calls", ""),
        )


def results_folder() -> Path:
    """Returns the folder that holds the results and logs of all runs."""
    return peers_cache() / "results"


@dataclass
class SuiteRun:
    """A run of a suite, and its results once it is over.

    Attributes:
        suite: The suite.
        with_us: Whether our extension is installed and each directory is analyzed.
        with_cbo: Without us, whether Spark's cost-based optimizer is on.
        compiled: The classes of a suite that is compiled from sources.
        tests: Result and message of each test.
        counts: How often our extension acted.
        seconds: How long the run took.
    """

    suite: Suite
    with_us: bool
    with_cbo: bool = False
    compiled: CompiledSuites | None = None
    tests: dict[str, dict[str, str]] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0

    @property
    def folder(self) -> Path:
        """Holds what the run writes."""
        return results_folder() / self.suite.name / self._mode

    @property
    def _mode(self) -> str:
        if self.with_us:
            return "on"
        return "cbo" if self.with_cbo else "off"

    @property
    def passed(self) -> int:
        """Number of tests that passed."""
        return sum(1 for test in self.tests.values() if test["result"] == "passed")

    @property
    def failed(self) -> set[str]:
        """Names of the tests that failed."""
        return {name for name, test in self.tests.items() if test["result"] == "failed"}

    def results(self, environment: Environment, minutes: float, *, again: bool) -> SuiteRun:
        """Returns this run with its results: those that are kept, or those of a new run."""
        if again or not (self.folder / "seconds").exists():
            self._run(environment, minutes)
        self._read()
        return self

    def _run(self, environment: Environment, minutes: float) -> None:
        name = f"{self.suite.name} {MODES[self._mode]}"
        say(f"{name} ...")
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        began = time.monotonic()
        variables = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
        variables |= {
            "SPARK_TESTING": "1",
            "PYTHONPATH": join_paths([ROOT / "python"]),
            "PYSPARK_PYTHON": str(environment.python),
        }
        complete = self._run_java(environment, variables, minutes)
        self.seconds = time.monotonic() - began
        if complete:
            (self.folder / "seconds").write_text(f"{self.seconds:.1f}")
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)
        say(f"{name}: {self.seconds:.0f} s{'' if complete else ', not complete'}")

    def _run_java(self, environment: Environment, variables: dict[str, str], minutes: float) -> bool:
        """Runs the suite; False where it was ended before its last test."""
        with (self.folder / "log").open("w") as log:
            try:
                done = subprocess.run(
                    self._command(environment),
                    env=variables,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=60 * minutes,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return False
        return done.returncode in RUNNER_EXITS

    def _command(self, environment: Environment) -> list[str]:
        properties = {
            **TEST_PROPERTIES,
            "java.io.tmpdir": str(self.folder / "tmp"),
            "spark.test.home": str(environment.home),
            "peers.calls": self.suite.calls,
            "peers.log": str(self.folder / "tests.jsonl"),
            "peers.counts": str(self.folder / "counts.json"),
        }
        more: tuple[Path, ...] = ()
        if self.with_cbo:
            properties |= COST_BASED_OPTIMIZER
        if self.with_us:
            properties |= OUR_PROPERTIES
            properties["spark.metastore.store"] = (self.folder / "tmp" / "statistics").as_uri()
        if self.compiled is not None:
            more = self.compiled.class_path
            properties |= self.compiled.properties
        return [
            *("java", *JAVA_OPTIONS),
            *(f"--add-opens={package}=ALL-UNNAMED" for package in OPEN_PACKAGES),
            *(f"-D{key}={value}" for key, value in properties.items()),
            *("-cp", environment.class_path(more, with_shim=self.with_us)),
            *self._runner(),
        ]

    def _runner(self) -> list[str]:
        """Returns the class that runs the suite, and its arguments."""
        if self.suite.sources == "iceberg":
            methods = {test.partition(" ")[0] for test in self.suite.tests}
            return ["org.metastore.peers.JUnitRun", self.suite.class_name, *sorted(methods)]
        selected = [word for test in self.suite.tests for word in ("-t", test)]
        runner = ["org.scalatest.tools.Runner", "-oW", "-C", "org.metastore.peers.TestLog"]
        return [*runner, "-s", self.suite.class_name, *selected]

    def _read(self) -> None:
        """Reads the results; a test that began and did not end is `unfinished`."""
        log = self.folder / "tests.jsonl"
        for line in log.read_text("utf-8").splitlines() if log.exists() else []:
            entry = json.loads(line)
            if entry["result"] == "started":
                entry["result"] = "unfinished"
            self.tests[entry["test"]] = entry
        counts = self.folder / "counts.json"
        self.counts = json.loads(counts.read_text("utf-8")) if counts.exists() else {}
        if (self.folder / "seconds").exists():
            self.seconds = float((self.folder / "seconds").read_text())
