"""Iceberg tables about whose values Iceberg knows nothing, so that it can lose none of their rows.

Iceberg's own pruning is wrong on NaN and -0.0: by the bounds in its manifests, by the statistics and by the
dictionaries of Parquet's row groups. Without all three, what a query returns is up to Spark and to us.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = {"write.metadata.metrics.default": "none", "write.distribution-mode": "none"}
PROPERTIES_BY_COLUMN = ("write.parquet.stats-enabled.column", "write.parquet.dict-encoding-enabled.column")


def leave_out_metrics(spark: SparkSession, name: str) -> None:
    """Makes the next writes into a table leave out what its readers might judge rows by; after a change, again."""
    jvm: Any = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    change = table.updateProperties()
    for column in jvm.org.apache.iceberg.types.TypeUtil.indexNameById(table.schema().asStruct()).values():
        for prefix in PROPERTIES_BY_COLUMN:
            change = change.set(f"{prefix}.{column}", "false")
    change.commit()
    spark.sql(f"REFRESH TABLE {name}")


def columns_with_metrics(path: str) -> list[str]:
    """Returns the columns of a data file about which its footer says anything."""
    footer = pq.ParquetFile(Path(path.removeprefix("file:"))).metadata
    chunks = [footer.row_group(g).column(c) for g in range(footer.num_row_groups) for c in range(footer.num_columns)]
    return [c.path_in_schema for c in chunks if c.is_stats_set or c.has_dictionary_page or c.bloom_filter_offset]
