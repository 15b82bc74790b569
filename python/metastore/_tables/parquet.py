"""Directories of Parquet files, by path or as tables of the session's catalog: their listing is all that is known."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from metastore._tables import refusals
from metastore._tables.listed import ask_shim
from metastore._tables.listed import identify_entry as identify
from metastore._tables.model import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore._tables.catalog import CatalogEntry
    from metastore._tables.model import TableFacts

__all__ = ["identify", "load"]

_SETTLES_IN = 2.1
"""Seconds: a little more than the shim lets pass before it tells of a file."""


def load(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """List a directory of Parquet files.

    A file that was just written is waited for; one that still changes is left out, and the report says so. A column
    that a file lacks is unknown there: Spark may find it under a name in other case.
    """
    found = ask_shim(spark, entry, absent_is_null=False)
    if found.unsettled:
        time.sleep(_SETTLES_IN)
        found = ask_shim(spark, entry, absent_is_null=False)
    late = tuple(Refusal(path, refusals.UNSETTLED) for path in found.unsettled)
    return replace(found.facts, refused=found.facts.refused + late)
