"""Times MERGE, UPDATE and DELETE of few rows in tables of 1,000 data files, with the Metastore and without.

    python benchmarks/merge.py [--files 1000 --rows 1000 --runs 3]
    python benchmarks/merge.py --chain 50

Keys are in no order: the bounds of every file hold them. `spread` are keys of rows in any file, `together` those of
rows that share as few files as they can. Each command begins with the same files, with the Metastore and without in
turns.

With `--chain`, so many MERGEs of 10 keys follow each other on one table, whose new files are analyzed after each: how
the times and the number of stored objects grow.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import median, report, seconds, spark_session

import metastore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

MODES = ("copy-on-write", "merge-on-read")
KEYS = "merge_keys"
MERGE = f"MERGE INTO {{t}} t USING {KEYS} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged'"
UPSERT = MERGE + " WHEN NOT MATCHED THEN INSERT (id, code, note) VALUES (s.id, 0, 'new')"
INSERT = f"MERGE INTO {{t}} t USING {KEYS} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, code) VALUES (s.id, 0)"
WITH_US = {"spark.metastore.enabled": "true", "spark.metastore.pruning.rowLevel": "all"}
NO_FILES = (0, 0)
"""A scan that the history notes when it is planned, and whose files another query chooses."""
WITHOUT_US = {"spark.metastore.enabled": "false"}


class Target:
    """A table whose commands begin with the same files each time."""

    def __init__(self, spark: SparkSession, mode: str, files: int, rows: int) -> None:
        self.spark = spark
        self.name = "ice.db." + mode.replace("-", "_")
        modes = [f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge")]
        spark.sql(
            f"CREATE TABLE {self.name} (id BIGINT, code BIGINT, uid STRING, note STRING) USING iceberg"
            f" TBLPROPERTIES ({', '.join(modes)})"
        )
        made = spark.range(files * rows).selectExpr(
            "id", "id % 100000 AS code", "md5(CAST(id AS STRING)) AS uid", "repeat('n', 40) AS note"
        )
        made.repartition(files, "id").writeTo(self.name).option("distribution-mode", "none").append()
        metastore.analyze(spark, self.name, progress=False)
        self.first = self._snapshot()
        self.spark.table(self.name).where("id = 1").collect()  # without any scan there is no history

    def run(self, statement: str, settings: dict[str, str]) -> None:
        """Runs a statement under settings."""
        for name, value in settings.items():
            self.spark.conf.set(name, value)
        self.spark.sql(statement.format(t=self.name))

    def restore(self) -> None:
        """Makes the first files current again."""
        if self._snapshot() != self.first:
            self.spark.sql(f"CALL ice.system.set_current_snapshot('{self.name.removeprefix('ice.')}', {self.first})")

    def files_read(self, statement: str) -> tuple[int, int]:
        """Returns how many files a statement reads to find its rows, and of how many."""
        noted = self._scans()
        self.run(statement, WITH_US)
        self.restore()
        return next(scan for scan in self._scans()[len(noted) :] if scan != NO_FILES)

    def last_scan(self) -> tuple[int, int]:
        """Returns how many files the last command read to find its rows, and of how many."""
        return next(scan for scan in reversed(self._scans()) if scan != NO_FILES)

    def _scans(self) -> list[tuple[int, int]]:
        scans = self.spark.sql("SELECT * FROM metastore.history()").collect()
        return [(scan.files_read, scan.files_total) for scan in scans if self.name in scan.table]

    def _snapshot(self) -> int:
        return self.spark.sql(f"SELECT snapshot_id FROM {self.name}.refs WHERE name = 'main'").first()[0]


def write_keys(target: Target, count: int, kind: str, folder: Path) -> None:
    """Writes the keys of so many rows as the Parquet directory that is merged."""
    order = "_file, id" if kind == "together" else "hash(id)"
    keys = target.spark.sql(f"SELECT id FROM {target.name} ORDER BY {order} LIMIT {count}")
    path = str(folder / f"{target.name}-{count}-{kind}")
    keys.coalesce(1).write.parquet(path)
    target.spark.read.parquet(path).createOrReplaceTempView(KEYS)


def measure(target: Target, operation: str, statement: str, runs: int) -> dict[str, Any]:
    """Returns one line of the result."""

    def timed(settings: dict[str, str]) -> Callable[[], None]:
        return lambda: target.run(statement, settings)

    read, files = target.files_read(statement)
    times: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(runs):
        for name, settings in (("with", WITH_US), ("without", WITHOUT_US)):
            times[name].append(seconds(timed(settings)))
            target.restore()
    return {
        "table": target.name.rsplit(".", 1)[-1],
        "command": operation,
        "files read": read,
        "of": files,
        "seconds": median(times["with"]),
        "without": median(times["without"]),
        "ratio": median(times["without"]) / median(times["with"]),
    }


def follow(target: Target, merges: int, folder: Path) -> list[dict[str, Any]]:
    """Returns a line for every ten MERGEs of a chain."""
    settings = {**WITH_US, "spark.metastore.analyze.auto": "wait"}
    lines = []
    times: list[float] = []
    for number in range(1, merges + 1):
        keys = target.spark.range(number, number + 10 * 4711, 4711)
        keys.createOrReplaceTempView(KEYS)
        times.append(seconds(lambda: target.run(MERGE, settings)))
        if number % 10 == 0:
            read = target.last_scan()
            stored = sum(1 for path in folder.rglob("_metastore/**/*") if path.is_file())
            lines.append(
                {
                    "merges": number,
                    "seconds of one": median(times[-10:]),
                    "files read": read[0],
                    "of": read[1],
                    "objects": stored,
                }
            )
    return lines


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=1_000, help="of a file")
    parser.add_argument("--keys", type=int, nargs="+", default=[10, 1_000, 100_000])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--chain", type=int, default=0, help="MERGEs that follow each other")
    options = parser.parse_args()
    rows = []
    history = {"spark.metastore.history.enabled": "true"}
    with tempfile.TemporaryDirectory() as scratch, spark_session(Path(scratch), **history) as spark:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        for mode in options.modes:
            target = Target(spark, mode, options.files, options.rows)
            if options.chain:
                rows += [{"table": mode, **line} for line in follow(target, options.chain, Path(scratch))]
                continue
            rows += [
                measure(target, verb.split()[0], f"{verb} WHERE code = 4711", options.runs)
                for verb in ("UPDATE {t} SET note = 'u'", "DELETE FROM {t}")
            ]
            for kind in ("together", "spread"):
                for count in options.keys:
                    write_keys(target, count, kind, Path(scratch))
                    for name, statement in (("MERGE", MERGE), ("upsert", UPSERT), ("insert only", INSERT)):
                        rows.append(measure(target, f"{name}, {count} keys {kind}", statement, options.runs))
    report(
        "merge-chain" if options.chain else "merge",
        rows,
        files=options.files,
        rows_of_a_file=options.rows,
        runs=options.runs,
    )


if __name__ == "__main__":
    main()
