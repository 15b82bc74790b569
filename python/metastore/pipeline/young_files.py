"""Waits for data files that were written a moment ago: a file that replaces one may get the same modification time.

Statistics identify such a file by path, size and modification time. They are safe once the clock that stamps the file
has passed the file's time: whoever writes the file from then on gives it a later time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import sleep, time_ns
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.descriptors import describe_format
from metastore.adapters.table_facts import Refusal
from metastore.format.data_files import leave_out_files, select_files
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.store import Store


_SECOND = 1000  # all times here are milliseconds
_NANOSECONDS = 1_000_000
_COARSE_AGE = 2 * _SECOND
"""No file system in use has a coarser clock, and clocks of two machines mostly differ by less."""
_FINE_AGE = 100
"""A file system that stores parts of a second has a clock that ticks at least every 10 ms."""
_LONGEST_WAIT = _COARSE_AGE + 100
_TICK = 20
"""A file system's clock may lag behind the time by one tick, of 10 ms at most: a wait ends two ticks late."""


def wait_for_young_files(facts: TableFacts, store: Store, load: Callable[[], TableFacts]) -> TableFacts:
    """Wait until young data files can be distinguished from later ones; leave out those that stay too young.

    Args:
        facts: The table.
        store: Its store, whose file system has a clock.
        load: Lists the table again, after a wait in which files may have been replaced.
    """
    if not facts.unsettled:
        return facts
    waits = [wait for wait in _find_waits(facts, store).values() if wait <= _LONGEST_WAIT]
    longest = max(waits, default=0)
    if longest > 0:
        sleep((longest + _TICK) / _SECOND)
    if longest > _FINE_AGE:
        facts = load()
    return _leave_out(facts, _find_waits(facts, store))


def _find_waits(facts: TableFacts, store: Store) -> dict[str, int]:
    """Map the paths of data files that are still too young to the milliseconds until they are old enough."""
    young = select_files(facts.files, facts.unsettled)
    if not young:
        return {}
    clock = _read_common_clock(young, store)
    waits = {}
    for file in young:
        wait = _find_wait(file, clock)
        if wait > 0:
            waits[file.path] = wait
    return waits


def _find_wait(file: DataFile, clock: int | None) -> int:
    """Return the milliseconds until a file is old enough; 0 or less if it is.

    Args:
        file: The file.
        clock: The time by the clock that stamps the file, or None if only another clock can be read.
    """
    modified = file.modified or 0
    if clock is None:
        now = time_ns() // _NANOSECONDS
        return modified + _COARSE_AGE - now
    is_fine = modified % _SECOND != 0
    age = _FINE_AGE if is_fine else _COARSE_AGE
    return modified + age - clock


def _read_common_clock(files: Sequence[DataFile], store: Store) -> int | None:
    """Read the clock of the files' file system, or return None if the store lies on another one."""
    paths = list(map(local_path, [store.uri, *(file.location for file in files)]))
    if None in paths:
        return None
    now = store.read_clock()
    devices = set(map(_find_device, map(str, paths)))
    if None in devices or len(devices) > 1:
        return None
    return int(now.timestamp() * _SECOND)


def _find_device(path: str) -> int | None:
    try:
        return Path(path).stat().st_dev
    except OSError:  # the file is gone: the task that reads it will report that
        return None


def _leave_out(facts: TableFacts, young: Collection[str]) -> TableFacts:
    """Leave young data files out of the table; a snapshot that is named by its files gets another name."""
    if not young:
        return replace(facts, unsettled=frozenset())
    files = leave_out_files(facts.files, young)
    refused = [Refusal(path, refusals.UNSETTLED) for path in young]
    return replace(
        facts,
        files=files,
        snapshot=_name_snapshot(facts, files),
        refused=(*facts.refused, *refused),
        unsettled=frozenset(),
    )


def _name_snapshot(facts: TableFacts, files: tuple[DataFile, ...]) -> str | None:
    name_snapshot = describe_format(facts.format).name_snapshot
    return facts.snapshot if name_snapshot is None else name_snapshot(files)
