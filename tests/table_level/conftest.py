"""Fixtures of the tests of the table level."""

from __future__ import annotations

import pytest


@pytest.fixture
def same_groups(monkeypatch):
    """Objects are the same in every run, and so are groups of data files: how large these are follows from digests."""
    monkeypatch.setattr("metastore.store.stored_objects.mark_unique", lambda extra=None: dict(extra or {}))
