"""Data files of a snapshot as the statistics of its columns order them."""

from __future__ import annotations

import pytest

from metastore.format.data_files import DataFile
from metastore.table_level.live_statistics import LiveStatistics


@pytest.mark.parametrize("modified", [None, 7], ids=["without times", "with times"])
def test_files_of_one_listing_can_be_ordered(modified):
    """A listing gives all files a modification time, or none: a time is never compared with None."""
    files = [
        DataFile(path=path, size=size, rows=1, format="parquet", modified=modified)
        for path, size in [("b", 1), ("a", 2), ("a", 1)]
    ]
    LiveStatistics(store=None, blocks=[], files=[*files, files[0]], nodes=None)
