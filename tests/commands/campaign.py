"""Many random UPDATE, DELETE and MERGE statements with us and without us, by hand or at night.

    uv run python tests/commands/campaign.py --commands 10000 --seed 7

Runs so many commands of each kind of table. Prints a line a round; exits with 1 where rows, rewritten files or errors
differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

ROUND = 40
"""Commands on one table."""


def main() -> int:
    """Runs rounds over the kinds of tables in turn until each had enough commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=10_000, help="commands for each kind of table")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no round after these")
    given = parser.parse_args()
    from commands.targets import KINDS  # noqa: PLC0415 - the path is set above
    from commands.twins import compare, fill  # noqa: PLC0415

    done, differences = Counter(), []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="commands-") as scratch:
        spark = _session(Path(scratch))
        print(f"--seed {given.seed}", flush=True)
        for number in range(len(KINDS) * -(-given.commands // ROUND)):
            if time.monotonic() - began > given.minutes * 60:
                break
            kind = KINDS[number % len(KINDS)]
            target = fill(spark, kind, f"commanded_{number}")
            found = compare(target, ROUND, given.seed + number)
            target.drop()
            done[kind.name] += found.commands
            differences += found.differences
            print(
                f"{kind.name}: {found.commands} commands, {found.files_read} of {found.files} files read,"
                f" {len(found.differences)} differences",
                flush=True,
            )
        spark.stop()
    for one in differences:
        print(one)
    print(dict(done), f"{len(differences)} differences, {time.monotonic() - began:.0f} s")
    return 1 if differences else 0


def _session(scratch: Path):
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from lakes import FORMATS, session_conf  # noqa: PLC0415

    for name in ("spark", "warehouse"):
        (scratch / name).mkdir()
    builder = SparkSession.builder.appName("commands")
    for key, value in session_conf(scratch / "spark", scratch / "warehouse").items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if "iceberg" in FORMATS:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    return spark


if __name__ == "__main__":
    sys.exit(main())
