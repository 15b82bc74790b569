"""Whose turn it is to analyze: at most one of those that live, until it ends or is gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from metastore.store import Store
from metastore.store.claims import LEASE_SECONDS, claim
from metastore.store.local_blobs import CreateReply
from metastore.store.retention import collect_garbage
from patience import ends_within


@pytest.fixture
def store(tmp_path):
    return Store.open(f"file:{tmp_path}/t/_metastore", writable=True)


def file_of(store, depth="full"):
    return Path(store.uri.removeprefix("file:")) / "log" / f"claim-{depth}"


def again(store):
    """The same store as another process opens it."""
    return Store.open(store.uri, writable=True)


def test_the_second_is_told_at_once_and_has_its_turn_after_the_first(store):
    with claim(store, "full") as first:
        with claim(again(store), "full") as second, claim(again(store), "footer") as of_footers:
            assert (first, second, of_footers) == (True, False, True)
        assert file_of(store).exists()
    with claim(again(store), "full") as second:
        assert second
    assert not file_of(store).exists()


def test_a_failure_ends_it(store):
    with pytest.raises(ZeroDivisionError), claim(store, "full"):
        raise ZeroDivisionError
    assert not file_of(store).exists()


@pytest.mark.parametrize(("age", "expected"), [(LEASE_SECONDS / 2, False), (LEASE_SECONDS * 2, True)])
def test_who_was_killed_holds_it_for_a_minute(store, age, expected):
    store.ensure_writable().put("log/claim-full", b"")
    os.utime(file_of(store), (time.time() - age,) * 2)
    with claim(again(store), "full") as mine:
        assert mine is expected
    assert file_of(store).exists() is not expected


def test_who_lives_renews_it(store):
    with claim(store, "full", lease=0.1), ends_within(30):
        written = file_of(store).stat().st_mtime_ns
        while file_of(store).stat().st_mtime_ns == written:
            time.sleep(0.01)


def test_who_hangs_is_not_waited_for(store):
    with claim(store, "full", lease=0.1, longest=0.2) as first, ends_within(30):
        while True:
            with claim(again(store), "full", lease=0.1) as second:
                if second:
                    break
            time.sleep(0.01)
    assert first


def test_a_store_that_does_not_tell_is_written_all_the_same(store, monkeypatch):
    blobs = store.ensure_writable()
    monkeypatch.setattr(blobs, "create", lambda *_: (CreateReply.UNKNOWN, "no answer"))
    with claim(store, "full") as mine:
        assert mine


def test_what_a_killed_one_left_is_collected(store):
    store.ensure_writable().put("log/claim-full", b"")
    assert store.read() is None
    os.utime(file_of(store), (time.time() - 10_000,) * 2)
    assert [blob.path for blob in store.run(collect_garbage(3600)).blobs] == ["log/claim-full"]
    assert not file_of(store).exists()
