"""A short campaign of everything at once; `campaign.py` runs it as long as one likes."""

from __future__ import annotations

import pytest

from store import campaign

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("where", ["disk", "s3"])
def test_nothing_is_lost_and_nothing_read_is_corrupt(tmp_path, where):
    how = {"seconds": 60, "most": 2, "share": 0.06}
    result = campaign.on_disk(tmp_path, **how) if where == "disk" else campaign.on_s3(**how)
    print(result)
    assert result.lost == result.twice == result.of("corrupt") == []
    assert len(result.of("committed")) >= 8
    assert result.of("killed")
    assert sum(result.of("reads")) > 0
    assert where == "disk" or result.caused
