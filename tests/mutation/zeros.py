"""Files with and without a zero, of the sign that a condition names or not: what a LIMIT counts on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import written

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {
    "id": "id - 50", "neg": "double(id) - 100", "pos": "double(id) + 1", "around": "double(id) - 50",
    "up_to": "double(id) - 99", "from": "double(id)", "few": "float(id - 50)", "nothing": "double(null)",
    "no_lo": "double(id) - 100", "no_hi": "double(id) + 1",
}  # fmt: skip
"""Columns of files of a hundred rows, some of which hold a zero; of the last two a bound is not known."""
CONDITIONS = (
    "neg <> 0", "pos <> 0 AND id < 50", "around < 100", "around > -100 AND pos <> 0",
    "around NOT IN (0.5D, 7.5D) AND pos > 0", "up_to <= 0", "`from` >= 0", "few < 100 AND pos <> 0",
    "nothing IS NULL OR nothing = 0", "no_lo <> 0", "no_hi <> 0",
    f"around < 100 AND neg NOT IN ({', '.join(f'{n}D' for n in range(99))})",
    f"pos IN ({', '.join(f'{n}D' for n in range(1, 101))})",
)  # fmt: skip
"""Conditions that all rows satisfy: a LIMIT counts on files without a zero where a zero is named, else on all."""


def make_queries(spark: SparkSession, folder: Path) -> list[str]:
    """Makes two files of all columns, and returns queries with LIMIT over them."""
    columns = [f"{value} AS `{name}`" for name, value in COLUMNS.items()]
    for _ in range(2):
        spark.range(0, 100, numPartitions=1).selectExpr(*columns).write.mode("append").parquet(str(folder))
    said = written.describe_parquet_folder(folder)
    for bound in ("lo", "hi"):
        said = said.change(f"no_{bound}", lambda _, row, name=f"{bound}_double": {**row, name: None})
    said.write()
    return [f"SELECT id FROM parquet.`{folder}` WHERE {condition} LIMIT 3" for condition in CONDITIONS]
