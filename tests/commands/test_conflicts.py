"""A command and another writer that commits while it runs end as they do without us."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakes
import metastore
from commands.targets import WITH_KEYS, WITHOUT_US, parameters
from commands.twins import fill
from planner.plans import conf

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.targets import Target

pytestmark = pytest.mark.spark

SECONDS = 60.0
"""After so long nobody waits any more."""
ROW = "(code, id, s, x, day)"
OTHER_WRITERS = {
    "a row that matches": f"INSERT INTO {{t}} {ROW} VALUES (5, 78, 'new', 0, NULL)",
    "a row that does not match": f"INSERT INTO {{t}} {ROW} VALUES (5, 900000, 'new', 0, NULL)",
    "a row of a file that is rewritten": "DELETE FROM {t} WHERE id = 78",
    "a row of a file that is left out": "DELETE FROM {t} WHERE id = 79",
}
"""What the other writer does while the command runs, with its statement."""
UPDATE = "UPDATE {t} SET x = wait_for_other(x) WHERE s = md5('78')"
READERS = {
    "ANALYZE in Python": lambda spark, table: metastore.analyze(spark, table, progress=False),
    "ANALYZE in SQL": lambda spark, table: spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS"),
    "locate": lambda spark, table: metastore.locate(spark, table, "id", spark.range(3)).collect(),
}
"""What looks at the newest snapshot of a table while a command runs."""
_names = itertools.count()


class Meeting:
    """Files by which a command in Spark's workers and another writer wait for each other."""

    def __init__(self, folder: Path) -> None:
        self.begun, self.done = folder / "begun", folder / "done"

    def forget(self) -> None:
        self.begun.unlink(missing_ok=True)
        self.done.unlink(missing_ok=True)

    def waiting_function(self) -> Callable[[float], float]:
        """The identity, which returns once the other writer has committed."""
        begun, done = str(self.begun), str(self.done)

        def wait_for_other(value: float) -> float:
            Path(begun).touch()
            until = time.monotonic() + SECONDS
            while not Path(done).exists() and time.monotonic() < until:
                time.sleep(0.05)
            return value

        return wait_for_other

    def run_beside(self, command: Callable[[], None], other: Callable[[], None]) -> None:
        """Runs a command, and another writer once the command has found its files."""
        self.forget()
        has_ended = threading.Event()

        def write() -> None:
            while not self.begun.exists() and not has_ended.is_set():
                time.sleep(0.05)
            try:
                other()
            finally:
                self.done.touch()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            command()
        finally:
            has_ended.set()
            writer.join()


@pytest.mark.parametrize("isolation", ["serializable", pytest.param("snapshot", marks=pytest.mark.campaign)])
@pytest.mark.parametrize("kind", parameters("copy-on-write"))
def test_another_writer_commits_while_a_command_runs(spark, kind, isolation, tmp_path):
    if isolation == "snapshot" and kind.format != "iceberg":
        pytest.skip("of Iceberg's tables")
    target = fill(spark, kind, f"conflicts_{next(_names)}")
    if kind.format == "iceberg":
        spark.sql(f"ALTER TABLE {target.name} SET TBLPROPERTIES ('write.update.isolation-level' = '{isolation}')")
    meeting = Meeting(tmp_path)
    spark.udf.register("wait_for_other", meeting.waiting_function(), "double")
    first = target.version()
    errors = set()
    for name, statement in OTHER_WRITERS.items():
        without, with_us = (
            _end_of_both(target, meeting, statement, settings, first) for settings in (WITHOUT_US, WITH_KEYS)
        )
        assert with_us == without, name
        errors.add(with_us[0])
    assert errors != {""}, "no writer is in another's way"
    target.drop()


def _end_of_both(
    target: Target, meeting: Meeting, statement: str, settings: dict[str, str], first: int
) -> tuple[str, tuple[int, int]]:
    """The error of the command and the rows after both, from the same files."""
    if target.version() != first:
        target.restore(first)

    def both(name: str) -> None:
        meeting.run_beside(
            lambda: target.spark.sql(UPDATE.format(t=name)), lambda: target.spark.sql(statement.format(t=name))
        )

    change = target.run(both, settings)
    return change.error, change.rows


@pytest.mark.parametrize("kind", parameters("copy-on-write"))
def test_after_a_command_its_session_reads_what_it_wrote(spark, kind, tmp_path):
    """A table that its catalog keeps is the one to which the commands of the session commit."""
    target = fill(spark, kind, f"conflicts_{next(_names)}")
    meeting = Meeting(tmp_path)
    spark.udf.register("wait_for_other", meeting.waiting_function(), "double")
    for name, look in READERS.items():
        number = float(next(_names))
        command = f"UPDATE {target.name} SET x = wait_for_other({number}D) WHERE s = md5('78')"
        meeting.run_beside(lambda: spark.sql(command), lambda: look(spark, target.name))  # noqa: B023 - runs now
        read = spark.sql(f"SELECT x FROM {target.name} WHERE s = md5('78')").collect()
        assert {row.x for row in read} == {number}, name
    target.drop()


@pytest.mark.parametrize("kind", parameters("copy-on-write"))
def test_a_table_that_was_loaded_again_meanwhile_is_as_new_as_the_command(spark, kind, tmp_path):
    """A catalog forgets a table while a long command runs, and the ANALYZE after an earlier write loads it again."""
    target = fill(spark, kind, f"conflicts_{next(_names)}")
    meeting = Meeting(tmp_path)
    spark.udf.register("wait_for_other", meeting.waiting_function(), "double")

    def load_again() -> None:
        spark.sql(f"REFRESH TABLE {target.name}")
        spark.table(target.name).count()

    with conf(spark, spark__metastore__analyze__auto="background"):
        command = f"UPDATE {target.name} SET x = wait_for_other(5D) WHERE s = md5('78')"
        meeting.run_beside(lambda: spark.sql(command), load_again)
    read = spark.sql(f"SELECT x FROM {target.name} WHERE s = md5('78')").collect()
    assert {row.x for row in read} == {5.0}
    target.drop()


@pytest.mark.skipif("iceberg" not in lakes.FORMATS, reason="the catalogs of other formats keep no table")
def test_analyze_sees_what_others_wrote_into_a_table_that_the_session_keeps(spark):
    name, other = f"ice.db.conflicts_{next(_names)}", spark.newSession()
    other.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id FROM range(10)")
    assert spark.table(name).count() == 10  # the session keeps it
    other.sql(f"INSERT INTO {name} SELECT id FROM range(7)")
    assert metastore.analyze(spark, name, progress=False).rows == 17
    assert spark.table(name).count() == 17
    other.sql(f"DROP TABLE {name} PURGE")
