"""Which columns get something that is made only where it is asked for: exact ranks, the distribution over files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore import settings
from metastore._analyze.request import FULL, find_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore._analyze.request import AnalyzeRequest
    from metastore._format.columns import Column
    from metastore._tables.model import TableFacts

ColumnChoice = bool | tuple[str, ...]
PARTITION_REFUSAL = "it is made of the whole table: leave the partition out"


def find_extra_columns(
    what: str,
    spark: SparkSession,
    facts: TableFacts,
    request: AnalyzeRequest,
    asked: ColumnChoice,
    failed: dict[str, str],
) -> set[Column]:
    """Find the columns that are to have something."""
    if request.depth != FULL:
        return set()
    listed = facts.properties.get(f"metastore.{what}.columns", "")
    names = [*settings.get(f"spark.metastore.{what}.columns", spark), *map(str.strip, listed.split(","))]
    sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    found: set[Column] = set()
    if asked is True:
        found.update(column for column in request.columns if column.encoding is not None)
    elif asked:
        found.update(find_columns(facts, asked, case_sensitive=sensitive))
    missing: dict[str, str] = {}
    configured = find_columns(facts, list(filter(None, names)), case_sensitive=sensitive, failed=missing)
    failed |= {f"{what} of {name}": reason for name, reason in missing.items()}
    found.update(set(configured) & set(request.columns))
    if found and len(request.files) < len(facts.files):
        failed |= {f"{what} of {column.name}": PARTITION_REFUSAL for column in found}
        return set()
    return found
