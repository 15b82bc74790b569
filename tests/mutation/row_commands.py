"""Row-level commands: the data files that they read to find their rows, and the rows that they leave."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commands.random_commands import ROWS, SOURCE
from commands.targets import KINDS, WITHOUT_US
from commands.twins import fill
from mutation import suites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from commands.targets import Target

SCALA_SOURCES = (
    "JoinKeyFilter.scala",
    "JoinKeySide.scala",
    "JoinPruningRule.scala",
    "PrunedScan.scala",
    "RowFilters.scala",
    "RowLevelPruning.scala",
)
PROPERTY = "metastore.pruning.rowLevel"
UPDATES = " WHEN MATCHED THEN UPDATE SET x = -1"
INSERTS = " WHEN NOT MATCHED THEN INSERT (id, code) VALUES (s.k, s.code)"
BY_KEY = "MERGE INTO {t} t USING {s} s ON t.id = s.k"
STATEMENTS = (
    "DELETE FROM {t} WHERE s = md5('78')",
    "UPDATE {t} SET x = x + 1 WHERE id BETWEEN 300 AND 302 AND code > 3",
    BY_KEY + UPDATES,
    BY_KEY + INSERTS,
    BY_KEY + UPDATES + INSERTS,
    BY_KEY + " AND t.code = s.code" + UPDATES + INSERTS,
    BY_KEY + " AND t.s IS NOT NULL" + UPDATES + INSERTS,
    BY_KEY + " AND t.s IS NOT NULL" + INSERTS,
)
KEYS = "SELECT id AS k, CAST(id % 97 AS INT) AS code FROM range(100, 1000, 300)"
SOURCES = {
    "a range": KEYS,
    "a list": "SELECT * FROM VALUES (100L, 3), (400L, 12) v(k, code)",
    "one row": "SELECT 100L AS k, 3 AS code",
    "a table": "SELECT * FROM ice.db.mutation_keys",
    "files": "SELECT * FROM parquet.`{folder}/keys`",
    "a table of Parquet": "SELECT * FROM mutation_keys",
    "a cache": "SELECT * FROM mutation_cached",
    "groups": "SELECT first(k) AS k, code FROM ice.db.mutation_keys GROUP BY code",
    "a limit": "SELECT * FROM ice.db.mutation_keys ORDER BY k LIMIT 2",
    "a union": "SELECT * FROM ice.db.mutation_keys UNION ALL SELECT 1L, 1",
    "chance": "SELECT k, CAST(code + 0 * rand() AS INT) AS code FROM ice.db.mutation_keys",
    "a query inside": "SELECT * FROM ice.db.mutation_keys WHERE k <= (SELECT max(k) FROM ice.db.mutation_keys)",
    "as many as are looked up": "SELECT id AS k, CAST(id % 97 AS INT) AS code FROM range(1000)",
    "more than are looked up": "SELECT id AS k, CAST(id % 97 AS INT) AS code FROM range(1001)",
    "as many as the target": f"SELECT id AS k, CAST(id % 97 AS INT) AS code FROM range({ROWS})",
    "a user's function": "SELECT mutation_given(k) AS k, code FROM ice.db.mutation_keys",
    "a table as large": "SELECT k, code FROM ice.db.mutation_wide WHERE length(text) > 1",
    "a smaller table": "SELECT k, code FROM ice.db.mutation_narrow WHERE length(text) > 1",
    "rows in memory": "SELECT * FROM mutation_checkpointed",
    "files that may be missing": "SELECT * FROM mutation_missing",
    "files that may be damaged": "SELECT * FROM mutation_corrupt",
}
EVERY_SOURCE = (BY_KEY + UPDATES + INSERTS, BY_KEY + INSERTS)
"""The statements that are tried with every source; the others with a range of keys alone."""
MODES = (("off", None), ("conditions", None), ("all", "off"), ("all", " Conditions"), ("off", "all"), ("all", "wrong"))
"""The setting, and the table's property, that are tried with the first statements."""


@dataclass(frozen=True)
class Command:
    """A statement over the same rows of a target each time.

    Attributes:
        first_version: the version of the target with these rows.
        source: the query of a MERGE's source.
        restriction: the mode in the target's property, if it has one.
    """

    target: Target
    first_version: int
    text: str
    source: str
    restriction: str | None = None

    def run(self, settings: dict[str, str]) -> list[str]:
        """Runs the statement, and returns its error with the rows that it leaves, and the data files that it reads."""
        target, table = self.target, self.target.name
        if target.version() != self.first_version:  # also after a mutant that failed
            target.restore(self.first_version)
        if self.restriction is not None:
            target.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{PROPERTY}' = '{self.restriction}')")
        target.spark.sql(self.source).createOrReplaceTempView(SOURCE)
        began = int(time.time() * 1000)
        change = target.run(lambda name: target.spark.sql(self.text.format(t=name, s=SOURCE)), settings)
        scans = target.scans(since=began)
        if self.restriction is not None:
            target.spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{PROPERTY}')")
        return [f"{change.error} {change.rows}", str(scans)]


def make_suites(spark: SparkSession, folder: Path) -> Iterator[suites.Suite]:
    """Yields the commands with each kind of source; each leaves the table as it was."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    _create_sources(spark, folder)
    kinds = {kind.name: kind for kind in KINDS}
    delta = fill(spark, kinds["delta-vectors"], "mutation_commands_of_delta")
    for text in (STATEMENTS[0], *STATEMENTS[2:5]):
        yield _make_suite(Command(delta, delta.version(), text, KEYS), "Delta, keys of a range", mode="all")
    target = fill(spark, kinds["merge-on-read"], "mutation_commands")
    first_version = target.version()
    chosen = [(statement, "a range") for statement in STATEMENTS]
    chosen += [(statement, source) for statement in EVERY_SOURCE for source in SOURCES if source != "a range"]
    commands = [Command(target, first_version, text, SOURCES[source].format(folder=folder)) for text, source in chosen]
    for command, (_, source) in zip(commands, chosen, strict=True):
        yield _make_suite(command, f"keys of {source}", mode="all")
    for mode, restriction in MODES:
        for command in (commands[0], commands[2], commands[3]):
            restricted = replace(command, restriction=restriction)
            yield _make_suite(restricted, f"{mode}, table {restriction}", mode, (*SCALA_SOURCES, "ScanPlanner.scala"))


def _make_suite(command: Command, name: str, mode: str, only: tuple[str, ...] = SCALA_SOURCES) -> suites.Suite:
    rows = command.run(WITHOUT_US)[0]

    def wrong(_: int, answer: str) -> bool:
        return json.loads(answer)[0] != rows

    return suites.Suite(
        f"commands, {name}: {command.text}",
        ask=lambda: json.dumps(command.run({})),
        wrong=wrong,
        conf=(("spark.metastore.pruning.rowLevel", mode),),
        questions=[command.text],
        only=only,
    )


def _create_sources(spark: SparkSession, folder: Path) -> None:
    spark.udf.register("mutation_given", lambda key: key, "bigint")
    spark.sql(KEYS).write.parquet(str(folder / "keys"))
    for setting in ("Missing", "Corrupt"):
        reader = spark.read.option(f"ignore{setting}Files", "true")
        reader.parquet(str(folder / "keys")).createOrReplaceTempView(f"mutation_{setting.lower()}")
    spark.sql(KEYS).localCheckpoint().createOrReplaceTempView("mutation_checkpointed")
    spark.sql(f"CREATE TABLE mutation_keys USING parquet AS {KEYS}")
    # The same keys by another query: Spark takes the cache wherever a plan has the cached one.
    spark.sql(f"CACHE TABLE mutation_cached AS {KEYS.replace('1000', '999')}")
    spark.sql(f"CREATE TABLE ice.db.mutation_keys USING iceberg AS {KEYS}")
    for name, repeated in {"narrow": 10, "wide": 2000}.items():
        texts = f"concat_ws('', transform(sequence(1, {repeated}), i -> sha2(concat(k, i), 512))) AS text"
        spark.sql(f"CREATE TABLE ice.db.mutation_{name} USING iceberg AS SELECT *, {texts} FROM ({KEYS})")
