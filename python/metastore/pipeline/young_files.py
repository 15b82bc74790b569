"""Data files that were written a moment ago: a file that replaces one may get the same modification time.

Statistics know such a file by path, size and modification time. They may be kept once the clock that stamps the file
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
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.store import Store


_SECOND = 1000  # all times here are milliseconds
_NANOSECONDS = 1_000_000
_COARSE_REST = 2 * _SECOND
"""No file system in use has a clock that is coarser, and clocks of two machines are mostly nearer to each other."""
_FINE_REST = 100
"""Where a time has parts of a second the file system's clock ticks at least every 10 ms."""
_LONGEST_WAIT = _COARSE_REST + 100


def wait_for_young_files(facts: TableFacts, store: Store, load: Callable[[], TableFacts]) -> TableFacts:
    """Wait until young data files can be told from later ones; leave out those that cannot.

    Args:
        facts: The table.
        store: Its store, whose file system tells its clock.
        load: Lists the table again, after a wait in which files may have been replaced.
    """
    if not facts.unsettled:
        return facts
    rests = _find_missing_rests(facts, store)
    longest = max((rest for rest in rests.values() if rest <= _LONGEST_WAIT), default=0)
    if longest > 0:
        sleep(longest / _SECOND)
    if longest > _FINE_REST:
        facts = load()
    return _leave_out(facts, _find_missing_rests(facts, store))


def _find_missing_rests(facts: TableFacts, store: Store) -> dict[str, int]:
    """Find the milliseconds that young data files have to rest still, by path; none of those that have rested."""
    young = [file for file in facts.files if file.path in facts.unsettled]
    if not young:
        return {}
    clock = _read_common_clock(young, store)
    rests = {file.path: _find_missing_rest(file, clock) for file in young}
    return {path: rest for path, rest in rests.items() if rest > 0}


def _find_missing_rest(file: DataFile, clock: int | None) -> int:
    """Find how many milliseconds a file has to rest still; none are left where that is 0 or less.

    Args:
        file: The file.
        clock: What the clock says that stamps the file; None where only another one can be read.
    """
    modified = file.modified or 0
    if clock is None:
        return modified + _COARSE_REST - time_ns() // _NANOSECONDS
    is_fine = modified % _SECOND != 0
    return modified + (_FINE_REST if is_fine else _COARSE_REST) - clock


def _read_common_clock(files: list[DataFile], store: Store) -> int | None:
    """Read the clock of the files' file system; None where the store lies on another one."""
    paths = [local_path(store.uri), *(local_path(file.location) for file in files)]
    if None in paths:
        return None
    now = store.read_clock()
    devices = {_find_device(str(path)) for path in paths}
    if None in devices or len(devices) > 1:
        return None
    return int(now.timestamp() * _SECOND)


def _find_device(path: str) -> int | None:
    try:
        return Path(path).stat().st_dev
    except OSError:  # it is gone: the task that is to read it says so
        return None


def _leave_out(facts: TableFacts, young: Mapping[str, int]) -> TableFacts:
    """The table without some data files, at the snapshot that the others are."""
    if not young:
        return replace(facts, unsettled=frozenset())
    files = tuple(file for file in facts.files if file.path not in young)
    name_snapshot = describe_format(facts.format).name_snapshot
    return replace(
        facts,
        files=files,
        snapshot=facts.snapshot if name_snapshot is None else name_snapshot(files),
        refused=(*facts.refused, *_refuse(young)),
        unsettled=frozenset(),
    )


def _refuse(paths: Mapping[str, int]) -> Iterator[Refusal]:
    return (Refusal(path, refusals.UNSETTLED) for path in paths)
