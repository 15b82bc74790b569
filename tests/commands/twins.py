"""The same commands with us and without us, from the same files: rows, rewritten files and errors must be equal."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commands import random_commands
from commands.targets import WITH_KEYS, WITHOUT_US, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from commands.targets import Kind

FILES = 16
ANALYZED_AFTER = 4
"""After so many commands the table is analyzed again: in between, files without statistics mix in."""
RESTORED_AFTER = 8
FEWEST_FILES = FILES // 2
"""With fewer files there is little to leave out: the table gets its first files back."""


@dataclass
class Comparison:
    """The differences between two tables after a number of commands.

    Attributes:
        differences: a sentence each.
        files_read: data files that the scans of the target read with us.
        files: data files that they could have read.
    """

    differences: list[str] = field(default_factory=list)
    commands: int = 0
    files_read: int = 0
    files: int = 0


def fill(spark: SparkSession, kind: Kind, name: str) -> Target:
    """Creates an analyzed table with every kind of value."""
    target = Target(spark, kind, name)
    target.append(random_commands.row(f"range({random_commands.ROWS})"), FILES)
    target.analyze()
    return target


def compare(target: Target, commands: int, seed: int) -> Comparison:
    """Runs random commands, each twice from the same files, and goes on from what it leaves with us.

    Commands rewrite many small files as few large ones: now and then the table gets its first files back.
    """
    drawn, comparison, first = random.Random(seed), Comparison(), target.version()
    for number in range(commands):
        command = random_commands.draw(drawn)
        command.prepare(target.spark)
        before = target.version()
        without = target.run(command.run_in(target.spark), WITHOUT_US)
        if target.version() != before:
            target.restore(before)
        with_us = target.run(command.run_in(target.spark), WITH_KEYS)
        for name in ("error", "rows", "touched"):
            if getattr(with_us, name) != getattr(without, name):
                comparison.differences.append(
                    f"seed {seed}, command {number}, {name} of {target.kind.name}: {command.text}"
                )
        comparison.commands += 1
        is_short = len(target.files.state().files) < FEWEST_FILES
        if is_short or number % RESTORED_AFTER == RESTORED_AFTER - 1:
            target.restore(first)
        elif number % ANALYZED_AFTER == ANALYZED_AFTER - 1:
            target.analyze()
    if target.rows_of_spark() != target.files.state().rows:
        comparison.differences.append(
            f"seed {seed}, after the last command: Spark reads other rows of {target.kind.name}"
        )
    for read, files in target.scans():
        comparison.files_read += read
        comparison.files += files
    return comparison


def read_by(target: Target, statement: str, mode: str) -> int:
    """Runs a statement, and counts the data files read to find those that it changes.

    The history has no line of a scan that is left alone: such a scan reads all files.
    """
    scans_before = len(target.scans())
    change = target.run(
        lambda name: target.spark.sql(statement.format(t=name)), {"spark__metastore__pruning__rowLevel": mode}
    )
    assert change.error == ""
    first = [read for read, files in target.scans()[scans_before:] if files]
    return first[0] if first else FILES
