"""TPC-H data as Iceberg tables of many files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from metastore.errors import MetastoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


CATALOG = "demo"
LINEITEM = f"{CATALOG}.tpch.lineitem"
ORDERS = f"{CATALOG}.tpch.orders"
FILES = 24
_GENERATOR = "tpchgen-cli"


class DemoError(MetastoreError):
    """The demonstration cannot run; the message names the missing part."""

    code = "METASTORE_DEMO_FAILED"


def generate_tpch(scale: float, folder: Path) -> None:
    """Generate TPC-H's `lineitem` and `orders` as one Parquet file each."""
    generator = _find_generator()
    if generator is None:
        raise DemoError(f"{_GENERATOR} is not installed.", "Run: pip install 'pyspark-metastore[demo]'")
    command = [generator, "parquet", "-s", f"{scale:g}", "--tables=lineitem,orders", f"--output-dir={folder}"]
    process = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - the generator's path
    if process.returncode:
        errors = process.stderr.strip().splitlines()
        reason = errors[-1] if errors else "no reason given"
        raise DemoError(f"{_GENERATOR} failed: {reason}.", "Try another --scale.")


def _find_generator() -> str | None:
    """Return the program of this Python, or else one on the PATH."""
    program = Path(sys.executable).parent / _GENERATOR
    if program.exists():
        return str(program)
    return shutil.which(_GENERATOR)


def catalog_settings(warehouse: Path, jar: Path) -> dict[str, str]:
    """Return the settings of a Spark with Iceberg and a catalog in a folder."""
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": "2g",
        "spark.jars": str(jar),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(warehouse),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }


def write_tables(spark: SparkSession, folder: Path) -> None:
    """Write both tables in the order in which a shop's rows arrive: by date, and by nothing else.

    Orders get the address of their page, as tables of events have: a text whose first 30 bytes are always the same.
    """
    lines = spark.read.parquet(str(folder / "lineitem.parquet"))
    _write_table(lines, "l_shipdate", LINEITEM)
    page = "concat('https://shop.example/orders/', date_format(o_orderdate, 'yyyy/MM/dd'), '/', o_orderkey) AS o_page"
    orders = spark.read.parquet(str(folder / "orders.parquet")).selectExpr("*", page)
    _write_table(orders, "o_orderdate", ORDERS)


def _write_table(rows: DataFrame, date: str, table: str) -> None:
    ordered = rows.repartitionByRange(FILES, date)
    # Spark would otherwise gather the small parts of this little table into fewer files.
    ordered.sparkSession.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    ordered.writeTo(table).using("iceberg").tableProperty("write.distribution-mode", "none").create()
