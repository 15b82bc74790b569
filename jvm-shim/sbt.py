"""Runs sbt on the shim for both Spark lines; what it needs it fetches.

    uv run python jvm-shim/sbt.py package
    uv run python jvm-shim/sbt.py scalafmtAll

After `package` it compares the jar for Spark 4.1 with the one that the Python build made: both have the same entries.
sbt comes through `metastore.jars`, Spark 4.1's jars are those of this Python's pyspark, Spark 3.5's those of the locked
dependency group `spark35`, kept in `.venv-spark35`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from hatch_build import source_digest

from metastore import jars

ROOT = Path(__file__).resolve().parent.parent
SPARK35 = ROOT / ".venv-spark35"


def spark35_folder() -> Path:
    """Installs the group `spark35`, without this project, and returns its pyspark folder."""
    command = [
        "uv",
        "sync",
        "--quiet",
        "--inexact",
        "--no-install-project",
        "--no-default-groups",
        "--group",
        "spark35",
    ]
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(SPARK35)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return next(SPARK35.glob("lib/python3.*/site-packages/pyspark"))


def entries(jar: Path) -> set[str]:
    """Returns the names of the files in a jar, without folders and manifest."""
    with zipfile.ZipFile(jar) as opened:
        return {name for name in opened.namelist() if not name.endswith("/") and name != "META-INF/MANIFEST.MF"}


def differences() -> list[str]:
    """Returns the entries that only one of the two builds for Spark 4.1 has."""
    built = next((ROOT / "jvm-shim/target/spark-4.1").rglob("metastore-shim-*.jar"))
    return sorted(entries(built) ^ entries(jars.shim()))


def main() -> int:
    """Runs sbt with the arguments given and returns its exit code, or 1 if the two builds differ."""
    formats_only = all(task.startswith("scalafmt") for task in sys.argv[1:])
    folders = {} if formats_only else {"4.1": jars.pyspark_jars().parent, "3.5": spark35_folder()}
    properties = [f"-Dpyspark.{line}={folder}" for line, folder in folders.items()]
    properties += [f"-Dsource.{line}={source_digest(line)}" for line in folders]
    launcher = jars.fetch("sbt-launch")
    command = ["java", "-Xss8m", "-Dsbt.log.noformat=true", *properties, "-jar", str(launcher), *sys.argv[1:]]
    code = subprocess.run(command, check=False, cwd=ROOT).returncode
    if code or "package" not in sys.argv:
        return code
    found = differences()
    if found:
        sys.stderr.write(f"sbt and the Python build made different jars: {', '.join(found)}\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
