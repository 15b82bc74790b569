"""Built-in statistics by their descriptors: what is written out of them, and what they say of values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import metastore
from kernel.samples import ARROW, PROFILES, column, values
from metastore.format.object_schemas import SUMMARY, TABLE_NODES
from metastore.kernel.built_in_statistics import BUILT_IN, COMPUTED, NOT_IN_GROUPS
from metastore.kernel.column_kernel import ColumnKernel

CONTRACT = Path(metastore.__file__).parent / "contract" / "statistics.json"
FORMAT = Path(__file__).parents[2] / "docs" / "format.md"


def analyze(spark_type, array, budget=1 << 30):
    kernel = ColumnKernel(column(spark_type), budget)
    for start in range(0, len(array), 1000):
        kernel.add(array[start : start + 1000])
    return kernel.finish(len(array))


def test_the_contract_says_what_the_descriptors_say():
    """METASTORE_GOLDEN=write writes it anew."""
    attributes = ("name", "type", "merge", "version", "meaning")
    described = [{name: getattr(statistic, name) for name in attributes} for statistic in BUILT_IN]
    if os.environ.get("METASTORE_GOLDEN") == "write":
        lines = ",\n".join(f"  {json.dumps(entry)}" for entry in described)
        CONTRACT.write_text(f"[\n{lines}\n]\n")
    assert json.loads(CONTRACT.read_text()) == described


def test_every_statistic_is_stored_and_documented():
    names = [statistic.name for statistic in BUILT_IN]
    assert SUMMARY.names == ["column", "file", *names]
    merged = [statistic.name for statistic in BUILT_IN if statistic.merge != NOT_IN_GROUPS]
    assert TABLE_NODES.names == ["node", *merged, "theta", "registers"]
    section = FORMAT.read_text().split("**summary**")[1].split("**zones**")[0]
    families = {name: f"{name.partition('_')[0]}_*" for name in names if name.startswith(("lo_", "hi_"))}
    assert [name for name in names if name not in section and families.get(name, name) not in section] == []


@pytest.mark.parametrize("spark_type", ["string", "binary"])
@pytest.mark.parametrize("budget", [1 << 30, 1 << 16])
@pytest.mark.parametrize("repeats", [1, 40])
def test_lengths_of_texts(spark_type, budget, repeats):
    random = np.random.default_rng(7)
    texts = [b"x" * length for length in random.integers(0, 4, 50).tolist()] + [b"%07d" % i for i in range(3000)]
    texts = [None, *texts] * repeats
    statistics = analyze(spark_type, pa.array(texts, pa.binary()).cast(ARROW[spark_type]), budget)
    lengths = [len(text) for text in texts if text is not None]
    assert statistics.numbers == {"min_len": 0, "max_len": 7, "empty_texts": lengths.count(0)}
    assert (statistics.max_len, lengths.count(0) >= 5 * repeats) == (7, True)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("spark_type", sorted(set(ARROW) - {"string", "binary"}))
def test_numbers_have_no_length_of_texts(spark_type, profile):
    statistics = analyze(spark_type, values(spark_type, profile, 100))
    of_numbers = {statistic.name for statistic in COMPUTED if statistic.of_numbers}
    if column(spark_type).encoding != "double":
        of_numbers -= {"negative_infinities", "positive_infinities"}
    assert set(statistics.numbers) == (set() if profile == "empty" else of_numbers)
