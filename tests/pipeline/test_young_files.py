"""The age from which a data file differs surely from one that replaces it."""

from __future__ import annotations

import pytest

from metastore.adapters.table_facts import TableFacts
from metastore.format.data_files import DataFile
from metastore.pipeline import young_files
from metastore.store import Store

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("modified", "clock", "expected"),
    [
        (NOW - 99, NOW, 1),
        (NOW - 101, NOW, -1),
        (NOW + 3, NOW, 103),
        (NOW - 1000, NOW, 1000),  # a time in whole seconds: the clock may be as coarse
        (NOW - 2000, NOW, 0),
        (NOW - 101, None, 1899),  # by a clock that is not the file system's
        (NOW - 2001, None, -1),
    ],
)
def test_the_rest_follows_from_the_clock_that_stamps_the_file(monkeypatch, modified, clock, expected):
    monkeypatch.setattr(young_files, "time_ns", lambda: NOW * 1_000_000)
    file = DataFile(path="a.parquet", size=1, rows=None, format="parquet", modified=modified)
    assert young_files._find_wait(file, clock) == expected


def test_another_file_system_has_another_clock(monkeypatch, tmp_path):
    file = tmp_path / "a.parquet"
    file.touch()
    store = Store.open(str(tmp_path / "_metastore")).writable()
    files = [DataFile(path="a.parquet", size=1, rows=None, format="parquet", open_location=file.as_uri(), modified=NOW)]
    assert young_files._read_common_clock(files, store) >= file.stat().st_mtime_ns // 1_000_000
    monkeypatch.setattr(young_files, "_find_device", len)
    assert young_files._read_common_clock(files, store) is None


@pytest.mark.parametrize("lag", range(10))
def test_a_clock_that_ticks_every_ten_milliseconds_leaves_no_file_out(monkeypatch, tmp_path, lag):
    time = [NOW + lag]
    file = DataFile(path="a.parquet", size=1, rows=None, format="parquet", modified=NOW - 7)
    facts = TableFacts(
        format="iceberg",
        uuid="u",
        location=tmp_path.as_uri(),
        root=tmp_path.as_uri(),
        name="t",
        identifier="t",
        snapshot="1",
        columns=(),
        files=(file,),
        defaults={},
        absent_is_null=True,
        local=True,
        snapshot_sql="t",
        unsettled=frozenset({file.path}),
    )

    def sleep(seconds: float) -> None:
        time[0] += round(seconds * 1000)

    monkeypatch.setattr(young_files, "sleep", sleep)
    monkeypatch.setattr(young_files, "_read_common_clock", lambda *_: time[0] // 10 * 10)
    store = Store.open(str(tmp_path / "_metastore"))
    rested = young_files.wait_for_young_files(facts, store, lambda: facts)
    assert (rested.files, rested.refused) == ((file,), ())
