"""Runs sbt on the shim, which compiles only what changed and formats; what it needs it fetches.

    uv run python jvm-shim/sbt.py compile
    uv run python jvm-shim/sbt.py scalafmtAll

It compiles for Spark 4.1 with the jars of this Python's pyspark, and for Spark 3.5 with those of the locked dependency
group `spark35`, kept in `.venv-spark35`. `hatch_build.py` makes the jar and gives the compiler's options.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hatch_build

from metastore import jars

ROOT = Path(__file__).resolve().parent.parent
SPARK35 = ROOT / ".venv-spark35"


def install_spark35() -> Path:
    """Install the group `spark35` without this project, and return its pyspark folder."""
    group = ["--no-install-project", "--no-default-groups", "--group", "spark35"]
    command = ["uv", "sync", "--quiet", "--inexact", *group]
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(SPARK35)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return next(SPARK35.glob("lib/python3.*/site-packages/pyspark"))


def list_properties(pyspark: Path) -> list[str]:
    """List what `build.sbt` asks for the Spark line of a pyspark."""
    spark = hatch_build.installed(pyspark)
    options = [*hatch_build.SCALAC_OPTIONS, *hatch_build.OPTIONS_OF_SCALA[spark.binary]]
    return [
        f"-Dpyspark.{spark.line}={pyspark}",
        f"-Dscala.{spark.line}={spark.scala}",
        f"-Doptions.{spark.line}={' '.join(options)}",
    ]


def main() -> int:
    """Run sbt with the arguments of the command line and return its exit code."""
    tasks = sys.argv[1:]
    command = ["java", "-Xss8m", "-Dsbt.log.noformat=true"]
    if any(not task.startswith("scalafmt") for task in tasks):
        command += list_properties(hatch_build.pyspark_folder())
        command += list_properties(install_spark35())
    command += ["-jar", str(jars.fetch("sbt-launch")), *tasks]
    return subprocess.run(command, check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
