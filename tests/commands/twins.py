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


@dataclass
class Comparison:
    """What was found in a number of commands.

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
    drawn, found, first = random.Random(seed), Comparison(), target.version()
    for number in range(commands):
        text, run = random_commands.draw(drawn, target.spark)
        before = target.version()
        without = target.run(run, WITHOUT_US)
        if target.version() != before:
            target.restore(before)
        with_us = target.run(run, WITH_KEYS)
        for name in ("error", "rows", "touched"):
            if getattr(with_us, name) != getattr(without, name):
                found.differences.append(f"seed {seed}, command {number}, {name} of {target.kind.name}: {text}")
        found.commands += 1
        found.files_read += sum(read for read, _ in with_us.read)
        found.files += sum(files for _, files in with_us.read)
        if number % RESTORED_AFTER == RESTORED_AFTER - 1:
            target.restore(first)
        elif number % ANALYZED_AFTER == ANALYZED_AFTER - 1:
            target.analyze()
    return found
