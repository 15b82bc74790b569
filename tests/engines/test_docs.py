"""The examples of docs/engines.md run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyiceberg.catalog
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from engines.lakes import describe_delta, describe_iceberg

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)\n```)?", PAGE, re.DOTALL)


@pytest.fixture
def warehouse(tmp_path, monkeypatch):
    """The tables of the page."""
    monkeypatch.chdir(tmp_path)
    for number in range(8):
        amounts = [float(number * 25 + i % 25) for i in range(100)]
        country = [("CH", "NL", "DE", "FR")[number % 4]] * 100
        write_deltalake("warehouse/sales", pa.table({"amount": amounts, "country": country}), mode="append")
    table = DeltaTable("warehouse/sales")
    describe_delta(table).write(str(table.version()))
    for name, value in {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path}/c.db",
        "WAREHOUSE": f"file://{tmp_path}/ice",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__DEFAULT__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())  # it was read when this was imported
    catalog = load_catalog("default")
    catalog.create_namespace("db")
    orders = catalog.create_table("db.orders", pa.schema([("id", pa.int64())]))
    for number in range(5):
        orders.append(pa.table({"id": list(range(number * 1000, number * 1000 + 1000))}))
    describe_iceberg(orders).write(str(orders.current_snapshot().snapshot_id))


def test_the_page(warehouse, capsys):
    assert len(BLOCKS) > 6
    names = {}
    for code, expected in BLOCKS:
        exec(code, names)  # noqa: S102 - our own page
        said = capsys.readouterr().out
        if expected:
            assert said.strip() == expected
    assert names["files"].total == 8
