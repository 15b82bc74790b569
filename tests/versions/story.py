"""One release of a table format through the whole story, in a Spark of its own: `matrix.py` starts it.

Prints one line of JSON, a list: what `Outcome` has of each kind of table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import metastore
from formats.kinds import KINDS, ROW
from gaps import VARIANTS, Release, Variant, find_release
from lakes import session_conf
from metastore import jars
from planner.plans import conf, files_read, labels, plain, rows
from versions.predicates import draw, lost

KINDS_OF_TABLE = {
    "iceberg": {
        mode: "TBLPROPERTIES ('format-version' = '2', 'write.metadata.metrics.default' = 'none', "
        + ", ".join(f"'write.{command}.mode' = '{mode}'" for command in ("delete", "update", "merge"))
        + ")"
        for mode in ("copy-on-write", "merge-on-read")
    },
    "delta": {
        "deletion vectors": "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0',"
        " 'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')",
        "rewritten files": "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
    },
    "hudi": {
        kind: f"TBLPROPERTIES ('type' = '{kind}', 'primaryKey' = 'id', 'preCombineField' = 'v')"
        for kind in ("cow", "mor")
    },
    "parquet": {"directory": ""},
}
TIME = {"hudi": "TIMESTAMP AS OF '{}'"}
CHANGED = ROW.replace("CAST(id % 7 AS INT) AS v", "3000 AS v")
WHERE = ("id = 5", "id = 350", "v = 1000", "v = 2000", "v = 3000", "id = 13", "id = 213", "id > 395", "s < 's00010'")
"""What the changes touch: values that are only in what was written last, and rows that are gone."""


@dataclass
class Outcome:
    """The outcome of the story on one kind of table.

    Attributes:
        table: The kind of table.
        rows: At the end.
        files: Data files at the end.
        read: Of those, what the story's look-up of one key reads.
        asked: Queries that were compared with the answer without us.
        refused: What was refused, and why.
        wrong: What should not be; nothing where all is well.
    """

    table: str
    rows: int = 0
    files: int = 0
    read: int = 0
    asked: int = 0
    refused: str = ""
    wrong: tuple[str, ...] = ()


class Story:
    """A table, and what is found wrong with it."""

    def __init__(self, spark, release: Release, table: str, properties: str, scratch: Path) -> None:
        kind = KINDS[release.format]
        self.spark, self.release, self.kind = spark, release, kind
        self.name = kind.name.format(table.replace("-", "_").replace(" ", "_"))
        self.outcome, self._wrong = Outcome(table), []
        spark.sql(f"CREATE TABLE {self.name} ({COLUMNS}) USING {release.format} {properties}")
        for start in range(0, 400, 100):
            kind.append(spark, self.name, start, start + 100)
        self._scratch = scratch

    def tell(self, predicates: int, seed: int) -> Outcome:
        """Analyze, read fewer files, delete, update, merge, analyze again, look back."""
        self._say("analyze")
        self._analyze()
        before = self._snapshot() if self.release.format != "parquet" else ""
        old = plain(self.spark, f"SELECT * FROM {self.name}")
        self._fewer_files("id = 250")
        for change in self._changes():
            self._say(change)
            self.spark.sql(change)
            self.kind.settle(self.spark, self.name)
            self._same(WHERE)
        self._say("analyze again, ask")
        self._analyze()
        self._fewer_files("id = 350")
        self._same((*WHERE, *draw(Random(seed), predicates)))
        self._beyond_rows()
        if self.release.format != "parquet":  # a directory has no snapshots
            self._say("look back")
            self._look_back(before, len(old))
        self._numbers()
        self.outcome.wrong = tuple(self._wrong)
        return self.outcome

    def _say(self, step: str) -> None:
        print(f"{time.strftime('%X')} {self.outcome.table}: {step}", file=sys.stderr)

    def _expect(self, fact: bool, said: str) -> None:  # noqa: FBT001 - the question itself
        if not fact:
            self._wrong.append(said)

    def _analyze(self) -> None:
        columns = "COMPUTE STATISTICS FOR ALL COLUMNS"
        with conf(self.spark, spark__metastore__analyze__formats="iceberg,delta,hudi,parquet"):
            (row,) = self.spark.sql(f"ANALYZE TABLE {self.name} {columns}").collect()
        self._expect(not row.refused, f"ANALYZE refused {row.refused}")
        again = metastore.analyze(self.spark, self.name, progress=False)
        self._expect(not again.committed, "ANALYZE has something to do twice")
        self.outcome.files = row.files

    def _snapshot(self) -> str:
        return str(metastore.snapshots(self.spark, self.name)[-1]["snapshot"])

    def _fewer_files(self, where: str) -> None:
        query = f"SELECT * FROM {self.name} WHERE {where}"
        frame = self._compare(query)
        (read,) = files_read(frame)
        explained = metastore.explain(self.spark, query)
        read_files, live = sum(bool(row["kept"]) for row in explained), len(explained)
        self._expect(
            labels(frame) == [f"{live} -> {read_files} files"],
            f"EXPLAIN says {labels(frame)}, explain {live} -> {read_files}",
        )
        self._expect(read_files == read, f"{read} files read, explain says {read_files}: {where}")
        self._expect(read < live, f"no file skipped of {live}: {where}")
        self.outcome.read = read

    def _beyond_rows(self) -> None:
        """Aggregates that statistics answer in whole or in part, and a condition on an expression that has some."""
        metastore.analyze(self.spark, self.name, progress=False, expressions=["id + v"])
        with conf(self.spark, spark__metastore__aggregates__enabled=True):
            for where in ("true", "id >= 150", "id < 250"):
                for aggregates in ("count(*), min(s), max(id), sum(id), avg(v)", "count(DISTINCT v)"):
                    self._compare(f"SELECT {aggregates} FROM {self.name} WHERE {where}")
        for where in ("id + v > 300", "id + v = 2020"):
            self._compare(f"SELECT * FROM {self.name} WHERE {where}")

    def _changes(self):
        values = f"(SELECT {CHANGED} FROM (SELECT explode(array(7L, 500L)) AS id))"
        if self.release.format == "parquet":
            yield f"INSERT INTO {self.name} SELECT * FROM {values}"
            return
        yield f"DELETE FROM {self.name} WHERE id % 10 = 3 AND id < 300"
        yield f"UPDATE {self.name} SET v = 1000 WHERE id = 350"
        yield f"UPDATE {self.name} SET v = 2000, s = 'a' WHERE id BETWEEN 20 AND 22"
        yield (
            f"MERGE INTO {self.name} t USING {values} s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def _same(self, conditions, of: str = "") -> None:
        """Each condition finds the rows that it finds without us."""
        self._wrong += lost(self.spark, f"{self.name} {of}", conditions)
        self.outcome.asked += len(conditions)

    def _compare(self, query: str):
        frame = self.spark.sql(query)
        answered, without = rows(frame), plain(self.spark, query)
        self.outcome.asked += 1
        self._expect(answered == without, f"{len(answered)} rows, without us {len(without)}: {query}")
        return frame

    def _look_back(self, snapshot: str, count: int) -> None:
        then = TIME.get(self.release.format, "VERSION AS OF {}").format(snapshot)
        self._same((*WHERE, "id = 250", "true"), then)
        row_count = self.spark.sql(f"SELECT * FROM {self.name} {then}").count()
        self._expect(row_count == count, f"{row_count} rows as of before the changes, there were {count}")

    def _numbers(self) -> None:
        """Check the numbers of `summary`: each is true, or does not claim to be exact."""
        with conf(self.spark, spark__metastore__enabled=False):
            truth = self.spark.sql(f"SELECT count(id), min(id), max(id), count(1) FROM {self.name}").first()
        row = next(row for row in metastore.summary(self.spark, self.name) if row["column_name"] == "id")
        self._expect(row["count"] in (truth[0], None), f"summary counts {row['count']} values, there are {truth[0]}")
        low, high = int(row["min"]), int(row["max"])
        exact = (low, high) == (truth[1], truth[2])
        self._expect(exact or not row["exact"], f"summary: {low} to {high}, there are {truth[1]} to {truth[2]}")
        self.outcome.rows = truth[3]


COLUMNS = "id BIGINT, v INT, s STRING, x DOUBLE, st STRUCT<a: INT, b: STRING>, day DATE"


def refused(spark, release: Release, table: str, reason: str) -> Outcome:
    """An unsupported release is refused by an error that names the needed one; queries run as without us."""
    story = Story(spark, release, table, KINDS_OF_TABLE[release.format][table], Path())
    query = f"SELECT * FROM {story.name} WHERE id = 250"
    ways = {
        "ANALYZE": story._analyze,
        "analyze": lambda: metastore.analyze(spark, story.name, progress=False),
        "summary": lambda: spark.sql(f"SELECT * FROM metastore.summary('{story.name}')").collect(),
        "files": lambda: metastore.files(spark, story.name),
    }
    wrong = [f"{way}: {said}" for way, ask in ways.items() if reason not in (said := _error(ask))]
    wrong += [f"EXPLAIN: {label}" for label in labels(story._compare(query)) if label != reason]
    if release.refused:
        reasons = {row["reason"] for row in metastore.explain(spark, query)}
        wrong += [f"explain: {reasons}"] if reasons != {"NEEDS_RELEASE"} else []
        refusals = spark.sql("SELECT refusal FROM metastore_formats()").collect()
        wrong += [f"doctor: {refusals}"] if [row.refusal for row in refusals] != [reason] else []
    return Outcome(table, rows=400, files=4, read=4, asked=1, refused=reason, wrong=(*wrong, *story._wrong))


def _error(ask) -> str:
    try:
        return f"no error but {ask()}"
    except Exception as error:  # noqa: BLE001 - Spark's, py4j's or ours
        return " ".join(str(error).split())[:500]


def main() -> None:
    """Runs the story of one release and prints what it saw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("jar", help="of the release, as jars.lock calls it; parquet-4.3: none")
    parser.add_argument("--predicates", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--variant", default="", help="title of a variant of docs/gaps.json")
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    release = find_release(options.jar)
    variant = next((candidate for candidate in VARIANTS if candidate.title == options.variant), None)
    with tempfile.TemporaryDirectory(prefix="metastore-") as scratch:
        story_outcomes = outcomes(release, variant, Path(scratch), options.predicates, options.seed)
        print(json.dumps([asdict(outcome) for outcome in story_outcomes]))


def conf_of(variant: Variant | None) -> dict[str, str]:
    """The settings of a variant; its jar is there when Spark starts, as plug-ins have to be."""
    if variant is None:
        return {}
    if not variant.beside:
        return variant.conf
    return {**variant.conf, "spark.driver.extraClassPath": str(jars.fetch(variant.beside))}


def outcomes(release: Release, variant: Variant | None, scratch: Path, predicates: int, seed: int) -> list[Outcome]:
    """Run the story on one Spark with the jar of a release."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after its Python is named

    builder = SparkSession.builder.appName(release.title)
    formats = {} if release.format == "parquet" else {release.format: release.jar}
    settings = session_conf(scratch, scratch / "warehouse", formats) | conf_of(variant)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        if release.format == "iceberg":
            spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        kinds = KINDS_OF_TABLE[release.format]
        refusal = release.refused or (variant.refused if variant else "")
        reasons = dict(release.kinds_refused) | (dict.fromkeys(kinds, refusal) if refusal else {})
        return [
            refused(spark, release, table, reasons[table])
            if table in reasons
            else Story(spark, release, table, properties, scratch).tell(predicates, seed)
            for table, properties in kinds.items()
        ]
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
