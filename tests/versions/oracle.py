"""The oracle's whole suite on another line of Spark, on the tables of one format after the other.

    uv run python tests/versions/oracle.py --spark 4.3 [--format delta] [-- <arguments of pytest>]

The line gets an environment of its own, as of `matrix.py`. A directory of Parquet files needs no format's jar, so
that it is asked of every line. Exits with 1 where a test fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gaps import PARQUET, RELEASES
from versions.environments import PYSPARKS, ROOT, interpreter, say

WITHOUT_JARS = "parquet"


def main() -> None:
    """Runs the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", choices=sorted(PYSPARKS), required=True, help="the line of Spark")
    parser.add_argument("--format", help="the tables of this format alone")
    parser.add_argument("more", nargs="*", help="arguments of pytest")
    arguments = parser.parse_args()
    formats = [arguments.format] if arguments.format else formats_of(arguments.spark)
    failed = [name for name in formats if not passes(arguments.spark, name, arguments.more)]
    say(f"failed: {', '.join(failed)}" if failed else f"passed on Spark {arguments.spark}: {', '.join(formats)}")
    sys.exit(1 if failed else 0)


def formats_of(line: str) -> list[str]:
    """Returns the formats that a line has releases of, Parquet last."""
    return list(dict.fromkeys(release.format for release in (*RELEASES, *PARQUET) if release.spark == line))


def passes(line: str, name: str, more: list[str]) -> bool:
    """Whether the suite passes on the tables of a format."""
    say(f"Spark {line}, {name} ...")
    python = interpreter(line)
    suite = ["-m", "pytest", "-n0", "-p", "no:cacheprovider", "-m", "not campaign", "tests/oracle", *more]
    variables = {
        "PYTHONPATH": str(ROOT / "python"),
        "METASTORE_TEST_FORMATS": "" if name == WITHOUT_JARS else name,
        "PYSPARK_PYTHON": str(python),
    }
    done = subprocess.run([python, *suite], cwd=ROOT, env={**os.environ, **variables}, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    main()
