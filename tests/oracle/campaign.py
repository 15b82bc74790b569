"""The long run of the oracle, by hand or at night.

    uv run python tests/oracle/campaign.py --verdicts 10000000 --seed 7

Prints a line a round and the report at the end; exits with 1 when a file was skipped wrongly.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def main() -> int:
    """Runs rounds until enough verdicts were given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--files", type=int, default=300, help="data files a table")
    parser.add_argument("--predicates", type=int, default=1500, help="predicates a table")
    parser.add_argument("--queries", type=int, default=5, help="of these through whole queries")
    parser.add_argument("--first", type=int, default=0, help="number of the first round: decides its kind of table")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no round after these")
    arguments = parser.parse_args()
    from oracle.run import Campaign, Size  # noqa: PLC0415 - the path is set above

    with tempfile.TemporaryDirectory(prefix="oracle-") as scratch:
        session = _session(Path(scratch))
        print(f"--seed {arguments.seed}", flush=True)
        campaign = Campaign(
            session, Path(scratch), arguments.seed, Size(arguments.files, arguments.predicates, arguments.queries)
        )
        began = time.monotonic()
        campaign.number = arguments.first
        campaign.until(arguments.verdicts, tell=lambda line: print(line, flush=True), minutes=arguments.minutes)
        took = time.monotonic() - began
        print(campaign.text())
        for source, report in campaign.reports.items():
            print(source, "undecided:", *report.undecided.most_common(40), sep="\n  ")
        print(f"{campaign.verdicts} verdicts in {took:.0f} s: {campaign.verdicts / took:.0f} a second")
        session.stop()
    wrong = [wrong for report in campaign.reports.values() for wrong in report.wrong]
    wrong += [wrong for report in campaign.reports.values() for wrong in report.wrong_matches]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def _session(scratch: Path):
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from lakes import lakes  # noqa: PLC0415

    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "4g",
        **lakes(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.appName("oracle")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


if __name__ == "__main__":
    sys.exit(main())
