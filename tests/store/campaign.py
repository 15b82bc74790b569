"""Analyzers that commit side by side, are killed and get wrong replies; a reader, a compactor and a collector too.

    uv run python tests/store/campaign.py --minutes 10 --on disk
    uv run python tests/store/campaign.py --minutes 10 --on s3

Told at the end: commits, kills, wrong replies, and what must be zero: commits that were told of and are lost, commits
that are there twice, and reads of something that is not what was written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from metastore.errors import CommitUnknown, DamagedObject, MetastoreError, StoreNotReadable, StoreNotWritable
from metastore.format.manifest import iterate_objects
from metastore.store import Store, retention
from metastore.store.compaction import compact_store
from metastore.store.credentials import Credentials
from metastore.store.obstore_blobs import open_blobs
from store import s3
from store.small_blocks import TABLE, adding, block, snapshot

POINTS = ("before an object", "after an object", "before a manifest", "after a manifest")
GRACE_SECONDS = 20.0


class Dying:
    """Blobs under which the process is killed at a named point."""

    def __init__(self, blobs, chance, share):
        self._blobs, self._chance, self._share = blobs, chance, share

    def __getattr__(self, name):
        return getattr(self._blobs, name)

    def _maybe_die(self, point):
        if self._chance.random() < self._share / len(POINTS):
            print(json.dumps({"killed": point}), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    def put(self, path, data):
        self._maybe_die("before an object")
        self._blobs.put(path, data)
        self._maybe_die("after an object")

    def create(self, path, data):
        if not path.endswith(".json"):
            return self._blobs.create(path, data)
        self._maybe_die("before a manifest")
        answer = self._blobs.create(path, data)
        self._maybe_die("after a manifest")
        return answer


def say(**facts):
    print(json.dumps(facts), flush=True)


@dataclass(frozen=True)
class Order:
    """The order of a process: its store and role, its luck, and when to stop.

    Attributes:
        uri: The store.
        options: How it is reached.
        role: `read`, `keep up`, or the name of an analyzer.
        seed: Of its luck.
        share: How likely a request kills it.
        most: How many commits it makes.
        stop: A file whose existence tells it to stop.
    """

    uri: str
    options: dict
    role: str
    seed: str
    share: float
    most: int
    stop: str

    def goes_on(self):
        return not Path(self.stop).exists()


def analyze(store, order):
    """Commits blocks of one data file each and counts its commits in the settings; says before and after."""
    for number in range(order.most):
        if not order.goes_on():
            return
        mark = f"{order.role}-{number}"
        say(trying=order.role)
        added = adding(block(store, [mark]), snapshots=[snapshot(store, mark)])
        try:
            store.commit(TABLE, counting(added, order.role))
        except (CommitUnknown, StoreNotReadable) as doubt:
            say(unknown=order.role, why=doubt.code)
        except StoreNotWritable as refusal:  # too many conflicts, or an object that the store lost on the way
            say(refused=order.role, why=refusal.reason)
        else:
            say(committed=order.role)


def counting(change, role):
    def counted(old):
        made = change(old)
        return replace(made, settings={**made.settings, role: made.settings.get(role, 0) + 1})

    return counted


def read(store, order):
    """Reads everything that the newest manifest names, again and again."""
    reads = 0
    while order.goes_on():
        began = time.monotonic()
        try:
            manifest = store.read()
            for ref in iterate_objects(manifest) if manifest else ():
                store.get(ref)
        except DamagedObject as damage:
            if time.monotonic() - began < GRACE_SECONDS:
                say(corrupt=str(damage))
        except StoreNotReadable:
            continue
        reads += 1
        time.sleep(0.1)
    say(reads=reads)


def keep_up(store, order):
    """Compacts and collects."""
    while order.goes_on():
        try:
            before = compact_store(store)
            gone = store.run(retention.collect_garbage(GRACE_SECONDS))
            say(compacted=len(before.before.blocks) - len(before.after.blocks), collected=len(gone.blobs))
        except MetastoreError as doubt:
            say(postponed=doubt.code)
        time.sleep(1)


def work(order):
    chance = random.Random(order.seed)

    def blobs(**_):
        return Dying(open_blobs(order.uri, Credentials(order.options or {}), writable=True), chance, order.share)

    store = Store(order.uri, blobs, writable=True)
    {"read": read, "keep up": keep_up}.get(order.role, analyze)(store, order)


@dataclass
class Result:
    """The outcome of a run.

    Attributes:
        said: All lines of all processes.
        lost: Who was told of more commits than are there.
        twice: Who has more commits than were tried.
        caused: Wrong replies of the proxy.
    """

    said: list[dict] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    caused: int = 0

    def of(self, kind):
        return [line[kind] for line in self.said if kind in line]

    def __str__(self):
        counts = {
            kind: len(self.of(kind)) for kind in ("trying", "committed", "unknown", "refused", "killed", "corrupt")
        }
        totals = {kind: sum(self.of(kind)) for kind in ("reads", "compacted", "collected")}
        return json.dumps({**counts, **totals, "wrong_replies": self.caused, "lost": self.lost, "twice": self.twice})


class Crowd:
    """Processes that follow orders, each with a file for what it says."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.running = []
        self.started = 0

    def start(self, order):
        self.started += 1
        said = self.folder / f"said-{self.started}"
        with said.open("w") as out:
            command = [sys.executable, __file__, "--work", json.dumps(vars(order))]
            self.running.append((order, said, subprocess.Popen(command, stdout=out)))

    def ended(self):
        """The orders of processes that ended since the last question, with what they said and how they ended."""
        ended = [process for process in self.running if process[2].poll() is not None]
        self.running = [process for process in self.running if process not in ended]
        return [(order, said.read_text().splitlines(), process.returncode) for order, said, process in ended]

    def kill(self):
        for _, _, process in self.running:
            process.kill()
            process.wait()


def run(uri, store, *, seconds, analyzers=8, most=10**6, share=0.02, seed=1, options=None):
    """Lets processes work, for some time or so many commits each; replaces killed analyzers; looks what is there."""
    result, until = Result(), time.time() + seconds
    with tempfile.TemporaryDirectory() as folder:
        crowd, stop = Crowd(folder), Path(folder) / "stop"
        order = Order(uri=uri, options=options or {}, role="", seed="", share=share, most=most, stop=str(stop))
        for role in ("read", "keep up"):
            crowd.start(replace(order, role=role, share=0.0))
        for number in range(analyzers):
            crowd.start(replace(order, role=f"analyzer {number}", seed=f"{seed} {number}"))
        try:
            while crowd.running:
                for done, said, code in crowd.ended():
                    result.said += [json.loads(line) for line in said]
                    if code not in (0, -signal.SIGKILL):
                        raise AssertionError(f"{done.role} ended with {code}")
                    if code and not stop.exists():
                        crowd.start(replace(done, role=f"{done.role}'", seed=f"{done.seed}'"))
                if time.time() > until or all(order.role in ("read", "keep up") for order, _, _ in crowd.running):
                    stop.touch()
                time.sleep(0.1)
        finally:
            crowd.kill()
    tried, committed, there = Counter(result.of("trying")), Counter(result.of("committed")), store.read().settings
    result.lost = sorted(role for role in tried if there.get(role, 0) < committed[role])
    result.twice = sorted(role for role in tried if there.get(role, 0) > tried[role])
    return result


def on_disk(folder, **how):
    uri = str(Path(folder) / "_metastore")
    return run(uri, Store.open(uri), **how)


def on_s3(share=0.1, seed=1, **how):
    """As `on_disk`, with a proxy that answers wrongly."""
    with ExitStack() as stack:
        address = stack.enter_context(s3.running())
        proxy = stack.enter_context(s3.Proxy(address, s3.sometimes(seed, share)))
        uri = f"s3://{s3.BUCKET}/campaign/_metastore"
        options = dict(s3.access(proxy.address).options)
        result = run(uri, Store.open(uri, access=s3.access(address)), options=options, seed=seed, **how)
        result.caused = proxy.caused
        return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--on", choices=("disk", "s3"), default="disk")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", help="what one of the processes is told")
    arguments = parser.parse_args()
    if arguments.work:
        work(Order(**json.loads(arguments.work)))
        return
    with tempfile.TemporaryDirectory() as folder:
        how = {"seconds": 60 * arguments.minutes, "seed": arguments.seed}
        result = on_disk(folder, **how) if arguments.on == "disk" else on_s3(**how)
    print(result)
    print(*(line["corrupt"] for line in result.said if "corrupt" in line), sep="\n")
    sys.exit(bool(result.lost or result.twice or result.of("corrupt")))


if __name__ == "__main__":
    main()
