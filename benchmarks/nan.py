"""The cost of rows that Iceberg's own skipping loses: queries of columns with NaN and without, on an Iceberg table.

Each data file is ascending in its columns and has many row groups, the case in which Iceberg's filter of row groups
saves most: that filter cannot tell where NaN is.

    uv run python benchmarks/nan.py
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from common import alternate, median, report, spark_session

import metastore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "Iceberg": {"spark.metastore.enabled": "false"},
    "asked": {"spark.metastore.enabled": "true", "spark.metastore.iceberg.bypassSkipping": "false"},
    "repaired": {"spark.metastore.enabled": "true", "spark.metastore.iceberg.bypassSkipping": "true"},
}
# Of the first, 1 of 10,000 rows is NaN in every file, of the second all rows of one file, of the third none.
COLUMNS = {"everywhere": "id % 10000 = 77", "one_file": "id < {rows}", "nowhere": "false"}
CONDITIONS = ("{} = {least}", "{} < {least}", "{} > {most}", "{} BETWEEN {least} AND {least} + 1")


def main() -> None:
    """Writes the table, asks and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=32)
    parser.add_argument("--rows", type=int, default=250_000, help="rows of a data file")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, spark_session(Path(folder)) as spark:
        write(spark, options.files, options.rows)
        rows = [row for column in COLUMNS for row in measure(spark, column, options)]
    report("nan", rows, files=options.files, rows_of_a_file=options.rows, runs=options.runs)


def write(spark: SparkSession, files: int, rows: int) -> None:
    """One data file a job, in row groups of 128 kB."""
    spark.sql(
        f"CREATE TABLE ice.db.nan ({', '.join(f'{c} DOUBLE' for c in COLUMNS)}, payload STRING) USING iceberg"
        " TBLPROPERTIES ('write.parquet.row-group-size-bytes' = '131072')"
    )
    values = (f"IF({nan.format(rows=rows)}, double('NaN'), id / 4) {name}" for name, nan in COLUMNS.items())
    selected = [*values, "sha2(CAST(id AS STRING), 256) payload"]
    for start in range(0, files * rows, rows):
        spark.range(start, start + rows, 1, 1).selectExpr(*selected).writeTo("ice.db.nan").append()
    metastore.analyze(spark, "ice.db.nan")


def measure(spark: SparkSession, column: str, options: argparse.Namespace) -> list[dict[str, object]]:
    """A row a condition: the answer's rows and the time of each setting."""
    results = []
    for condition in CONDITIONS:
        total = options.files * options.rows / 4
        where = condition.format(column, least=total / 2, most=total - options.rows / 400)
        counted: dict[str, int] = {}

        def ask(name: str, where: str = where, counted: dict[str, int] = counted) -> None:
            for key, value in SETTINGS[name].items():
                spark.conf.set(key, value)
            counted[name] = spark.sql(f"SELECT count(payload), max(payload) FROM ice.db.nan WHERE {where}").first()[0]

        times = alternate({name: lambda name=name: ask(name) for name in SETTINGS}, options.runs)
        rows = {f"rows {name}": counted[name] for name in SETTINGS}
        seconds = {f"{name} s": median(times[name]) for name in SETTINGS}
        results.append({"NaN": column, "condition": where.replace(column, "x"), **rows, **seconds})
    return results


if __name__ == "__main__":
    main()
