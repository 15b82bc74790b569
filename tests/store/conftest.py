"""A store on the disk."""

from __future__ import annotations

import pytest

from metastore.store import Store


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "_metastore"), writable=True)
