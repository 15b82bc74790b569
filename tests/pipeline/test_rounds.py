"""The rounds of an ANALYZE, without Spark: the first one begins with the manifest that its inputs came with."""

from __future__ import annotations

import pytest

from metastore.pipeline.rounds import _run_rounds
from metastore.spark_jobs.progress import NoProgress
from metastore.store import Store
from pipeline.lake import Lake


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path)


def test_an_unchanged_table_does_not_read_its_log_again(lake, monkeypatch):
    lake.analyzed()
    inputs = lake.inputs(manifest=lake.store.read())
    monkeypatch.setattr(Store, "read", lambda _: pytest.fail("it was read again"))
    state = _run_rounds(None, inputs, NoProgress())
    assert not state.is_committed
    assert state.coverage.count_files() == 3
