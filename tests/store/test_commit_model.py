"""The protocol's promises in every interleaving, and that each guard is needed for them (see `store.model`)."""

from __future__ import annotations

import logging
import uuid
from functools import lru_cache
from types import SimpleNamespace

import pytest

from metastore.errors import CommitUnknown, MetastoreError
from metastore.format.manifest import Manifest
from metastore.store import commit_log, retention
from metastore.store.commit_log import CreateLog, ListLog, ReadLog
from metastore.store.local_blobs import CreateReply
from store import model
from store.model import Analyzer, Broken, Search


class Clock:
    """One instant: equal runs must give equal bytes, or no state is ever seen again."""

    @classmethod
    def now(cls, _zone):
        return cls

    @staticmethod
    def isoformat(**_):
        return "2026-01-31T12:00:00.000000+00:00"


@pytest.fixture(autouse=True)
def _same_bytes_in_every_run(monkeypatch):
    monkeypatch.setattr(commit_log, "datetime", Clock)
    signed = commit_log._sign

    def marked(manifest, identity, log):
        content = repr((manifest, log))
        monkeypatch.setattr(commit_log, "uuid", SimpleNamespace(uuid4=lambda: uuid.uuid5(uuid.NAMESPACE_OID, content)))
        return signed(manifest, identity, log)

    monkeypatch.setattr(commit_log, "_sign", marked)
    monkeypatch.setattr(Manifest, "from_bytes", lru_cache(None)(Manifest.from_bytes))
    monkeypatch.setattr(logging.getLogger(commit_log.__name__), "disabled", True)


LATER = {"weeks": 1, "commits": 3, "weeks_ago": 1}
ASLEEP = {"weeks": 1, "sleepers": True, "commits": 1}


@pytest.mark.parametrize(
    ("actors", "settings"),
    [
        (("a", "b"), {"faults": 1}),
        (("a", "b"), {"faults": 1, "stale_listing": True}),
        (("a", "b"), {"faults": 2}),
        (("a", "compact"), {"faults": 1, "commits": 1}),
        (("a", "gc", "read"), LATER),
        (("compact", "gc", "read"), LATER),
        (("a", "compact", "gc"), LATER),
        (("a", "burst", "gc"), ASLEEP),
    ],
    ids=str,
)
def test_nothing_is_lost_done_twice_or_deleted_too_soon(actors, settings):
    assert Search(*actors, **settings).run() > 1


def trusting_replies(store, sequence, data):
    reply, _ = yield CreateLog(sequence, data)
    return reply is CreateReply.CREATED


def resending_blindly(store, sequence, data):
    reply, _ = yield CreateLog(sequence, data)
    if reply is CreateReply.UNKNOWN:
        reply, _ = yield CreateLog(sequence, data)
    return reply is CreateReply.CREATED


def believing_what_exists(store, sequence, data):
    reply, _ = yield CreateLog(sequence, data)
    return reply is not CreateReply.UNKNOWN or (yield ReadLog(sequence)) is not None


def giving_up(store, sequence, data):
    reply, reason = yield CreateLog(sequence, data)
    if reply is CreateReply.UNKNOWN:
        raise CommitUnknown(store, sequence, reason)
    return reply is CreateReply.CREATED


@pytest.mark.parametrize(
    "publish",
    [trusting_replies, resending_blindly, believing_what_exists, giving_up],
    ids=lambda function: function.__name__,
)
def test_without_read_back_commits_are_lost_or_done_twice(monkeypatch, publish):
    monkeypatch.setattr(commit_log, "_publish", publish)
    with pytest.raises(Broken):
        Search("a", "b", faults=1).run()


def test_without_put_if_absent_commits_are_lost():
    with pytest.raises(Broken, match=r"lost|never was|follow"):
        Search("a", "b", overwrites=True).run()


def test_without_probing_a_stale_listing_stops_all(monkeypatch):
    def listed_only():
        numbers = yield ListLog()
        top = max(numbers, default=0)
        data = (yield ReadLog(top)) if top else None
        return commit_log.Head(top, Manifest.from_bytes(data) if data else None)

    monkeypatch.setattr(commit_log, "find_head", listed_only)
    with pytest.raises((Broken, MetastoreError)):
        Search("a", "b", stale_listing=True).run()


def test_without_rebase_the_other_writer_is_undone(monkeypatch):
    first = {}

    class Stubborn(Analyzer):
        def change(self, old):
            return first.setdefault(id(self), super().change(old))

    monkeypatch.setitem(model.ACTORS, "a", lambda world: Stubborn(world, "a"))
    with pytest.raises(Broken, match="lost"):
        Search("a", "b").run()


def test_without_looking_for_later_ones_a_sleeper_writes_into_the_past(monkeypatch):
    def nothing(_store, _manifest):
        return
        yield

    monkeypatch.setattr(commit_log, "_refuse_a_gap", nothing)
    with pytest.raises(Broken, match="a was told that it committed, and is lost"):
        Search("a", "burst", "gc", **ASLEEP).run()


def without_grace(monkeypatch):
    monkeypatch.setattr(model, "GRACE", -1)


def listing_last(monkeypatch):
    find = retention.find_garbage

    def reordered(grace, earlier):
        log = yield ListLog()
        manifests = {}
        for number in log:
            manifests[number] = yield ReadLog(number)
        steps, answer = find(grace, earlier), None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as done:
                return done.value
            read = isinstance(request, ReadLog)
            answer = manifests[request.sequence] if read else (yield request)
            if isinstance(request, retention.ListStore):
                answer = [
                    entry for entry in answer if not entry.path.startswith("log/") or int(entry.path[4:24]) in log
                ]

    monkeypatch.setattr(retention, "find_garbage", reordered)


def keeping_the_newest_alone(monkeypatch):
    monkeypatch.setattr(retention, "_select_needed", lambda ages, _: {max(ages)} if ages else set())


def forgetting_details(monkeypatch):
    def named_by(number, _):
        data = yield ReadLog(number)
        return retention.NamesInManifest(retention.find_object_names(data), "", None)

    monkeypatch.setattr(retention, "_read_names", named_by)


@pytest.mark.parametrize(
    "guard",
    [without_grace, listing_last, keeping_the_newest_alone, forgetting_details],
    ids=lambda guard: guard.__name__,
)
def test_without_its_guards_the_collector_takes_what_is_needed(monkeypatch, guard):
    guard(monkeypatch)
    with pytest.raises(Broken, match=r"did not find|was deleted"):
        Search("a", "compact", "gc", "read", **LATER).run()
