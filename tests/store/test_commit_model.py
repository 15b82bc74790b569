"""Every interleaving of two writers, a crash and a wrong reply, on the real commit steps.

The steps of `protocol.commit` are run against a log in memory, one request at a time, in every order. A writer that is
told that it committed must find its change in every later state exactly once; what it is told must be true; whatever
happens, the log stays a chain. Each guard of the protocol is then taken away, and the same search has to find what
it guards against.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from metastore._format.manifest import Manifest, TableIdentity
from metastore._store import protocol
from metastore._store.protocol import CreateLog, ListLog, Pause, ReadLog
from metastore._store.replies import Reply
from metastore.errors import CommitUnknown, MetastoreError

TABLE = TableIdentity("iceberg", "u", "file:/t", "t")
FAULTS = ("reply lost", "says exists", "not stored", "crash before", "crash after")


class Broken(AssertionError):  # noqa: N818 - what it says
    """The protocol's promise does not hold in some run."""


@dataclass
class World:
    """A log with honest put-if-absent, two writers, and at most so many faults."""

    faults: int
    stale_listing: bool = False
    overwrites: bool = False
    log: dict[int, bytes] = field(default_factory=dict)
    listed: list[int] = field(default_factory=list)

    def answer(self, request, fault):
        match request:
            case ListLog():
                return [] if self.stale_listing else list(self.log)
            case ReadLog(sequence):
                return self.log.get(sequence)
            case Pause():
                return None
            case CreateLog(sequence, data):
                return self._create(sequence, data, fault)
        raise TypeError(request)

    def _create(self, sequence, data, fault):
        if fault in ("not stored", "crash before"):
            return Reply.UNKNOWN, fault
        if sequence in self.log and not self.overwrites:
            return Reply.EXISTS, "412"
        self.log[sequence] = data
        if fault == "says exists":
            return Reply.EXISTS, fault
        return (Reply.UNKNOWN, fault) if fault else (Reply.CREATED, "")


class Writer:
    """One commit that adds the writer's mark to the settings, counting how often."""

    def __init__(self, mark):
        self.mark = mark
        self.outcome = None
        self.steps = protocol.commit("store", TABLE, self._change, lambda manifest: manifest)
        self.request = next(self.steps)

    def _change(self, old):
        base = old or Manifest(TABLE)
        return replace(base, settings={**base.settings, self.mark: base.settings.get(self.mark, 0) + 1})

    def step(self, world, fault):
        answer = world.answer(self.request, fault)
        if fault and fault.startswith("crash"):
            self.outcome = "crashed"
            return
        try:
            self.request = self.steps.send(answer)
        except StopIteration as done:
            self.outcome = done.value
        except CommitUnknown:
            self.outcome = "unknown"


def run(choices, **settings):
    """One run that follows the choices; returns how many alternatives each decision had."""
    world, widths, position = World(**settings), [], 0
    writers = [Writer("a"), Writer("b")]

    def choose(options):
        nonlocal position
        widths.append(len(options))
        chosen = options[choices[position]] if position < len(choices) else options[0]
        position += 1
        return chosen

    while running := [writer for writer in writers if writer.outcome is None]:
        writer = choose(running) if len(running) > 1 else running[0]
        fault = None
        if isinstance(writer.request, CreateLog) and world.faults:
            fault = choose((None, *FAULTS))
            world.faults -= fault is not None
        writer.step(world, fault)
    check(world, writers)
    return widths


def check(world, writers):
    if sorted(world.log) != list(range(1, len(world.log) + 1)):
        raise Broken(f"numbers {sorted(world.log)}")
    try:
        states = [Manifest.from_bytes(world.log[number]) for number in sorted(world.log)]
    except MetastoreError as e:
        raise Broken(str(e)) from e
    previous = None
    for number, state in enumerate(states, 1):
        if (state.sequence, state.previous) != (number, previous):
            raise Broken(f"{number} does not follow the one before")
        previous = state.digest
    final = states[-1].settings if states else {}
    for writer in writers:
        if final.get(writer.mark, 0) > 1:
            raise Broken(f"{writer.mark} is there {final[writer.mark]} times")
        if isinstance(writer.outcome, Manifest) and final.get(writer.mark) != 1:
            raise Broken(f"{writer.mark} was told that it committed, and is lost")
        if isinstance(writer.outcome, Manifest) and writer.outcome not in states:
            raise Broken(f"{writer.mark} was told of a state that never was")
        if writer.outcome is None or (writer.outcome == "unknown" and world.faults):
            raise Broken(f"{writer.mark} does not know, without need")


def search(**settings):
    """Runs every combination of choices; returns how many runs that were."""
    choices, runs = [], 0
    while True:
        widths = run(choices, **settings)
        runs += 1
        choices = (choices + [0] * len(widths))[: len(widths)]
        while choices and choices[-1] + 1 >= widths[len(choices) - 1]:
            choices.pop()
        if not choices:
            return runs
        choices[-1] += 1


@pytest.mark.parametrize(("faults", "stale_listing"), [(1, False), (1, True), (2, False)])
def test_nothing_is_lost_or_done_twice(faults, stale_listing):
    assert search(faults=faults, stale_listing=stale_listing) > 600


def trusting_replies(store, sequence, data):
    reply, _ = yield CreateLog(sequence, data)
    return reply is Reply.CREATED


def resending_blindly(store, sequence, data):
    reply, _ = yield CreateLog(sequence, data)
    if reply is Reply.UNKNOWN:
        reply, _ = yield CreateLog(sequence, data)
    return reply is Reply.CREATED


def believing_what_exists(store, sequence, data):
    reply, _ = yield CreateLog(sequence, data)
    return reply is not Reply.UNKNOWN or (yield ReadLog(sequence)) is not None


def giving_up(store, sequence, data):
    reply, reason = yield CreateLog(sequence, data)
    if reply is Reply.UNKNOWN:
        raise CommitUnknown(store, sequence, reason)
    return reply is Reply.CREATED


@pytest.mark.parametrize(
    "publish", [trusting_replies, resending_blindly, believing_what_exists], ids=lambda function: function.__name__
)
def test_without_read_back_commits_are_lost_or_done_twice(monkeypatch, publish):
    monkeypatch.setattr(protocol, "_publish", publish)
    with pytest.raises(Broken):
        search(faults=1)


def test_without_put_if_absent_commits_are_lost():
    with pytest.raises(Broken, match=r"lost|never was|follow"):
        search(faults=0, overwrites=True)


def test_without_probing_a_stale_listing_stops_all(monkeypatch):
    def listed_only():
        numbers = yield ListLog()
        top = max(numbers, default=0)
        data = (yield ReadLog(top)) if top else None
        return protocol.Head(top, Manifest.from_bytes(data) if data else None)

    monkeypatch.setattr(protocol, "head", listed_only)
    with pytest.raises((Broken, MetastoreError)):
        search(faults=0, stale_listing=True)


def test_without_rebase_the_other_writer_is_undone(monkeypatch):
    first = {}

    class Stubborn(Writer):
        def _change(self, old):
            return first.setdefault(id(self), super()._change(old))

    monkeypatch.setitem(globals(), "Writer", Stubborn)
    with pytest.raises(Broken, match="lost"):
        search(faults=0)


def test_giving_up_at_the_first_doubt_is_noticed(monkeypatch):
    monkeypatch.setattr(protocol, "_publish", giving_up)
    with pytest.raises(Broken):
        search(faults=1)
