"""Checks of tables that nobody analyzed by hand."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import metastore
from pruning.scala import module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60.0
NUMBERS = itertools.count()
"""Of tables, each with a name of its own."""


def is_analyzed(spark, name: str) -> bool:
    return all(row["analyzed"] for row in metastore.files(spark, name))


def has_values(spark, name: str) -> bool:
    """Whether more than footers is known of all data files."""
    return is_analyzed(spark, name) and all(row["distinct"] is not None for row in metastore.columns(spark, name, "id"))


def becomes(condition: Callable[..., bool], spark, name: str) -> bool:
    until = time.monotonic() + PATIENCE
    while not condition(spark, name) and time.monotonic() < until:
        time.sleep(0.1)
    return condition(spark, name)


@contextmanager
def warnings_of(spark, scala_object: str) -> Iterator[list[str]]:
    """The warnings that a Scala object writes to the driver's log, once the block has ended."""
    with warnings_below(spark, module(spark, scala_object).getClass().getName().removesuffix("$")) as lines:
        yield lines


@contextmanager
def warnings_below(spark, logger_name: str) -> Iterator[list[str]]:
    """The warnings of all loggers whose names begin so, once the block has ended."""
    log4j = spark._jvm.org.apache.logging.log4j
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%p %m%n").build()
    writer = spark._jvm.java.io.StringWriter()
    builder = log4j.core.appender.WriterAppender.newBuilder().setName("test").setLayout(layout)
    appender = builder.setTarget(writer).build()
    appender.start()
    logger = log4j.LogManager.getLogger(logger_name)
    level = logger.getLevel()
    log4j.core.config.Configurator.setLevel(logger_name, log4j.Level.WARN)
    logger.addAppender(appender)
    lines: list[str] = []
    try:
        yield lines
    finally:
        logger.removeAppender(appender)
        log4j.core.config.Configurator.setLevel(logger_name, level)
        written = writer.toString().splitlines()
        lines += [line.removeprefix("WARN ") for line in written if line.startswith("WARN ")]
