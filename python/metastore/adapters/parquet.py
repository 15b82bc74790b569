"""Directories of Parquet files, by path or as tables of the session's catalog: their listing is all that is known."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.descriptors import TableFormat
from metastore.adapters.shim_facts import ask_shim
from metastore.adapters.table_facts import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import TableFacts


_SETTLES_IN = 2.1
"""Seconds: a little more than the shim lets pass before it tells of a file."""


def complete(spark: SparkSession, entry: CatalogEntry, answer: ShimAnswer) -> TableFacts:
    """The listing of a directory of Parquet files.

    A file that was just written is waited for; one that still changes is left out, and the report says so. A column
    that a file lacks is unknown there: Spark may find it under a name in other case.
    """
    if answer.unsettled:
        time.sleep(_SETTLES_IN)
        answer = ask_shim(spark, entry)
    late = tuple(Refusal(path, refusals.UNSETTLED) for path in answer.unsettled)
    return replace(answer.facts, refused=answer.facts.refused + late)


FORMAT = TableFormat("parquet", complete)
