"""Every interleaving of analyzers, a compaction, a collector, a reader, crashes, wrong replies and time.

The real steps of commits (`protocol`) and of garbage collection (`collect`) run against a store in memory, one request
at a time, in every order; a state that was reached before is not searched again. What must hold in every run stands in
`check`, and what the protocol takes for granted in `World.may_pass`: that an ANALYZE and a query end within the grace
period, unless the run is about one that does not.
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from metastore.errors import CommitUnknown, DamagedObject, MetastoreError, StoreNotWritable
from metastore.format.manifest import Block, Manifest, TableIdentity, iterate_objects
from metastore.format.objects import ObjectRef
from metastore.store import commit_log, retention
from metastore.store.commit_log import CreateLog, ListLog, Pause, ReadLog
from metastore.store.local_blobs import CreateReply

TABLE = TableIdentity("iceberg", "u", "file:/t", "t")
FAULTS = ("reply lost", "says exists", "not stored", "crash before", "crash after")
GRACE, WEEK = 5, 10


class Broken(AssertionError):  # noqa: N818 - what it says
    """The protocol's promise does not hold in some run."""


@dataclass(frozen=True)
class PutObject:
    """Writes an object; its detail object is written before."""

    name: str


@dataclass(frozen=True)
class ReadObjects:
    """Reads objects, all at once."""

    names: tuple[str, ...]


def reference(name: str) -> ObjectRef:
    return ObjectRef(name=name, length=100, sha256="0" * 64, rows=1, footer_length=50, footer_sha256="0" * 64)


def name_of(mark: str, kind: str = "files") -> str:
    digest = hashlib.sha256(f"{kind} {mark}".encode()).digest()
    return f"{kind}-{uuid.UUID(bytes=digest[:16])}.parquet"


def block_of(mark: str) -> Block:
    return Block(id=mark, computed="full", columns=(), files=reference(name_of(mark)), summary=())


@dataclass
class World:
    """A store with honest put-if-absent and a clock."""

    faults: int = 0
    weeks: int = 0
    stale_listing: bool = False
    overwrites: bool = False
    sleepers: bool = False
    now: int = 0
    log: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)

    def key(self) -> Any:
        log = tuple((number, data, at) for number, (data, at) in sorted(self.log.items()))
        return self.faults, self.weeks, self.now, log, tuple(sorted(self.objects.items()))

    def may_pass(self, actors) -> bool:
        """Whether a week may go by now."""
        return self.weeks > 0 and (self.sleepers or not any(actor.is_busy for actor in actors))

    def put(self, name: str) -> None:
        """Writes an object and the detail object that it names."""
        detail = name_of(name, "sketches")
        self.objects[detail] = self.objects[name] = self.now
        self.details[name] = detail

    def answer(self, request, fault):
        match request:
            case ListLog():
                return [] if self.stale_listing else list(self.log)
            case ReadLog(sequence):
                return self.log.get(sequence, (None, 0))[0]
            case Pause():
                return None
            case CreateLog(sequence, data):
                return self._create(sequence, data, fault)
            case PutObject(name):
                return self.put(name)
            case ReadObjects(names):
                return [name for name in names if name not in self.objects]
            case retention.ListStore():
                log = [
                    retention.Blob(f"log/{number:020}.json", 1, self.now - at) for number, (_, at) in self.log.items()
                ]
                return log + [retention.Blob(f"objects/{name}", 1, self.now - at) for name, at in self.objects.items()]
            case retention.ReadDetails(ref):
                return {self.details[ref.name]} if ref.name in self.objects else DamagedObject(ref.name, "missing")
            case retention.Delete(path):
                folder, _, name = path.partition("/")
                return self.log.pop(int(name[:20])) if folder == "log" else self.objects.pop(name)
        raise TypeError(request)

    def _create(self, sequence, data, fault):
        if fault in ("not stored", "crash before"):
            return CreateReply.UNKNOWN, fault
        if sequence in self.log and not self.overwrites:
            return CreateReply.EXISTS, "412"
        self.log[sequence] = data, self.now
        if fault == "says exists":
            return CreateReply.EXISTS, fault
        return (CreateReply.UNKNOWN, fault) if fault else (CreateReply.CREATED, "")


class Actor:
    """Steps that are run one request at a time; what it was answered so far is its state."""

    is_busy = True

    def __init__(self, world: World, steps: Any) -> None:
        self.world = world
        self.heard: list[Any] = []
        self.outcome: Any = None
        self._steps = steps
        self.request = next(steps)

    def step(self, fault) -> None:
        answer = self.world.answer(self.request, fault)
        self.heard.append(str(answer))
        if fault and fault.startswith("crash"):
            self.outcome = "crashed"
            return
        try:
            throws = isinstance(answer, MetastoreError)
            self.request = self._steps.throw(answer) if throws else self._steps.send(answer)
        except StopIteration as done:
            self.outcome = done.value if done.value is not None else "done"
        except CommitUnknown:
            self.outcome = "unknown"
        except StoreNotWritable:
            self.outcome = "refused"

    def key(self) -> Any:
        return tuple(self.heard), str(self.outcome)


class Committer(Actor):
    """Commits: objects first, then the manifest, if the objects are still there."""

    def finish(self, manifest):
        if any(ref.name not in self.world.objects for ref in iterate_objects(manifest)):
            raise StoreNotWritable("store", "an object was written and is not there")
        return manifest


class Analyzer(Committer):
    """Adds a block, and its mark to the settings, counting how often."""

    def __init__(self, world, mark):
        self.mark = mark
        super().__init__(world, self._analyze())

    def _analyze(self):
        yield PutObject(name_of(self.mark))
        return (yield from commit_log.commit("store", TABLE, self.change, self.finish))

    def change(self, old):
        base = old or Manifest(table=TABLE)
        settings = {**base.settings, self.mark: base.settings.get(self.mark, 0) + 1}
        return replace(base, blocks=(*base.blocks, block_of(self.mark)), settings=settings)

    @property
    def is_busy(self):
        return len(self.heard) > 0  # before its first object it has no state that could grow old


class Compactor(Committer):
    """Replaces all blocks by one."""

    def __init__(self, world):
        self.mark = None
        self.rounds = itertools.count()
        super().__init__(world, commit_log.commit("store", TABLE, self.change, self.finish))

    def change(self, old):
        if old is None or len(old.blocks) < 2:
            return None
        made = block_of(f"merged {next(self.rounds)}")
        self.world.put(made.files.name)
        return replace(old, blocks=(made,))


class Burst(Actor):
    """Others commit three times at once: what makes a writer that slept meet a collected log."""

    is_busy = False

    def __init__(self, world):
        self.mark = None
        super().__init__(world, self._commits())

    def _commits(self):
        yield Pause(0)
        for number in range(3):
            commit_at_once(self.world, block_of(f"burst {number}"))


class Collector(Actor):
    """Deletes garbage; may take as long as it likes."""

    is_busy = False

    def __init__(self, world):
        self.mark = None
        super().__init__(world, retention.collect_garbage(GRACE))


class Reader(Actor):
    """Finds the end of the log and reads what the manifest names, details too."""

    def __init__(self, world):
        self.mark = None
        super().__init__(world, self._read())

    def _read(self):
        head = yield from commit_log.find_newest()
        names = [ref.name for ref in iterate_objects(head.manifest)] if head.manifest else []
        return (yield ReadObjects((*names, *(name_of(name, "sketches") for name in names))))

    @property
    def is_busy(self):
        return len(self.heard) > 0


ACTORS = {"a": lambda world: Analyzer(world, "a"), "b": lambda world: Analyzer(world, "b"),
          "compact": Compactor, "gc": Collector, "read": Reader, "burst": Burst}  # fmt: skip


def commit_at_once(world: World, block: Block) -> None:
    """Commits a block in place of all others, with nobody in between."""

    def change(old):
        return replace(old or Manifest(table=TABLE), blocks=(block,))

    world.put(block.files.name)
    steps, answer = commit_log.commit("store", TABLE, change, lambda manifest: manifest), None
    with suppress(StopIteration):
        while True:
            answer = world.answer(steps.send(answer), None)


class Search:
    """Runs every combination of choices, pruning at states that were seen.

    Args:
        actors: Names of `ACTORS`.
        commits: How many manifests are there before.
        weeks_ago: How long ago these were committed.
        settings: Of the `World`.
    """

    def __init__(self, *actors: str, commits: int = 0, weeks_ago: int = 0, **settings: Any) -> None:
        self.actors = actors
        self.start = World(**settings)
        for number in range(1, commits + 1):
            commit_at_once(self.start, block_of(f"old {number}"))
        self.start.now += weeks_ago * WEEK
        self.seen: set[Any] = set()
        self.ends = 0

    def run(self) -> int:
        """Searches; returns how many different ends there are.

        Raises:
            Broken: If a promise does not hold in some run.
        """
        choices: list[int] = []
        while True:
            widths = self._run_once(choices)
            choices = (choices + [0] * len(widths))[: len(widths)]
            while choices and choices[-1] + 1 >= widths[len(choices) - 1]:
                choices.pop()
            if not choices:
                return self.ends
            choices[-1] += 1

    def _run_once(self, choices) -> list[int]:
        start = self.start
        world = replace(start, log=dict(start.log), objects=dict(start.objects), details=dict(start.details))
        actors = [ACTORS[name](world) for name in self.actors]
        widths: list[int] = []
        while running := [actor for actor in actors if actor.outcome is None]:
            moves = [(actor, fault) for actor in running for fault in self._faults(world, actor)]
            moves += [(None, None)] if world.may_pass(running) else []
            chosen = choices[len(widths)] if len(widths) < len(choices) else 0
            widths.append(len(moves))
            actor, fault = moves[chosen]
            if actor is None:
                world.now, world.weeks = world.now + WEEK, world.weeks - 1
            else:
                world.faults -= fault is not None
                actor.step(fault)
            if len(widths) >= len(choices):
                state = hash((world.key(), tuple(actor.key() for actor in actors)))
                if state in self.seen:
                    return widths
                self.seen.add(state)
        self.ends += 1
        check(world, actors)
        return widths

    @staticmethod
    def _faults(world, actor):
        return (None, *FAULTS) if world.faults and isinstance(actor.request, CreateLog) else (None,)


def check(world: World, actors) -> None:
    """The promises, at the end of a run."""
    try:
        states = [Manifest.from_bytes(data) for _, (data, _) in sorted(world.log.items())]
    except MetastoreError as e:
        raise Broken(str(e)) from e
    if not world.sleepers:
        _is_a_chain(states)
    final = states[-1] if states else Manifest(table=TABLE)
    for actor in actors:
        if isinstance(actor, Committer):
            _is_told_the_truth(world, actor, states, final)
        elif isinstance(actor, Reader) and actor.outcome and not world.sleepers:
            raise Broken(f"a reader did not find {actor.outcome}")
    if not world.sleepers:
        missing = [
            ref.name
            for ref in iterate_objects(final)
            if not {ref.name, world.details[ref.name]} <= world.objects.keys()
        ]
        if missing:
            raise Broken(f"the last manifest names {missing}, which was deleted")


def _is_a_chain(states) -> None:
    for before, state in itertools.pairwise(states):
        if (state.sequence, state.previous) != (before.sequence + 1, before.digest):
            raise Broken(f"{state.sequence} does not follow the one before")


def _is_told_the_truth(world, actor, states, final) -> None:
    mark, outcome = actor.mark, actor.outcome
    times = final.settings.get(mark, 0) if mark else 1
    if times > 1:
        raise Broken(f"{mark} is there {times} times")
    if isinstance(outcome, Manifest) and times != 1:
        raise Broken(f"{mark} was told that it committed, and is lost")
    if isinstance(outcome, Manifest) and outcome not in states and not world.weeks < world.now:
        raise Broken(f"{mark} was told of a state that never was")
    needless = outcome == "refused" or (outcome == "unknown" and world.faults)
    if outcome is None or (needless and not world.sleepers):
        raise Broken(f"{mark} does not know, without need")
