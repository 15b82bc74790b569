"""Draws docs/picture.svg, the picture of the README: `uv run python docs/picture.py`.

What it shows is what a Spark answers about the table of docs/guide.md. `tests/sql/test_guide.py` draws it again and
compares.
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

import metastore
from metastore.spark.local_session import start_local_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from rich.console import RenderableType

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "picture.svg"
TABLE = "orders"
SETTINGS = {"spark.metastore.aggregates.enabled": "true"}
QUERIES = (
    f"SELECT * FROM {TABLE} WHERE day = DATE '2026-03-01'",
    f"SELECT max(amount) FROM {TABLE} WHERE status = 'returned' AND day < '2026-02-01'",
    f"SELECT * FROM {TABLE} ORDER BY id DESC LIMIT 10",
    f"SELECT count(*), min(day), max(day) FROM {TABLE}",
)
LABEL = re.compile(r"\[Metastore: [^\]]+\]")
WIDTH = 102
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>A summary of a table with a histogram of each column, and queries that read one of sixteen files, or none</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw(spark: SparkSession) -> str:
    """The picture as SVG, of the table that the guide makes."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for part in _shown(spark):
        console.print(part)
    return console.export_svg(title="pyspark-metastore", code_format=FRAME, unique_id="picture")


def make_table(spark: SparkSession) -> None:
    """Runs the first statements of the guide, which make the table and analyze it."""
    (statements,) = re.findall(r"```sql\n(.*?);\n```", (DOCS / "guide.md").read_text("utf-8"), re.DOTALL)[:1]
    for statement in statements.split(";\n"):
        spark.sql(statement).collect()


def _shown(spark: SparkSession) -> Iterator[RenderableType]:
    yield _prompt(f"ANALYZE TABLE {TABLE} COMPUTE STATISTICS FOR ALL COLUMNS")
    yield Text()
    yield _prompt(f"SELECT * FROM metastore.summary('{TABLE}')")
    yield metastore.summary(spark, TABLE)
    for query in QUERIES:
        yield Text()
        yield _prompt(f"EXPLAIN {query}")
        yield _told(spark.sql(f"EXPLAIN {query}").first()[0])


def _prompt(statement: str) -> Text:
    return Text.assemble(("sql> ", "dim"), (statement, "bold"))


def _told(plan: str) -> Text:
    return Text.assemble("     ... ", (" ".join(dict.fromkeys(LABEL.findall(plan))), "bold green"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        conf = {"spark.sql.warehouse.dir": folder, "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}"}
        with start_local_spark({**conf, **SETTINGS}) as session:
            make_table(session)
            PICTURE.write_text(draw(session), "utf-8")
