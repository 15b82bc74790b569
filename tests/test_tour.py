"""The notebook `examples/tour.ipynb` runs in a kernel as it stands, and shows what its text says."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TOUR = Path(__file__).parents[1] / "examples" / "tour.ipynb"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(TOUR, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_the_notebook_is_kept_without_outputs(notebook):
    assert [cell.outputs for cell in code(notebook) if cell.outputs or cell.execution_count] == []


@pytest.mark.slow
@pytest.mark.spark
def test_the_tour(notebook, tmp_path):
    ran = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = {cell.source: [output.get("data", {}) for output in cell.outputs] for cell in code(ran)}
    summary = outputs["metastore.summary(spark, table)"][-1]["text/html"]
    assert "160,000 rows, 16 files" in summary.replace("<bdi>", "").replace("</bdi>", "")
    assert summary.count("<svg") == 5  # of all columns but the text
    assert outputs['sum(row["kept"] for row in plan), len(plan)'][-1]["text/plain"] == "(1, 16)"
    assert next(output[-1] for source, output in outputs.items() if "'ES'" in source)["text/plain"] == "(0, 16)"
    assert any(
        "image/png" in data for data in next(output for source, output in outputs.items() if ".plot()" in source)
    )
