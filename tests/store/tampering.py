"""Odd things in a store, as whoever can write a table's folder can put them there: cases as data."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Tampering:
    """Something odd.

    Attributes:
        name: What it is.
        make: Puts it into a store, given its folder and that of another table's store.
        refused: The folder that whoever needs it refuses by name, empty for the store; None where all goes on.
    """

    name: str
    make: Callable[[Path, Path], None]
    refused: str | None = None


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero") if os.getuid() else os.mknod(path, 0o020644, os.makedev(1, 5))


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, _inside(path.parent):
        listener.bind(path.name)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Addresses of sockets are short."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _link_to_pipe(path: Path) -> None:
    os.mkfifo(f"{path}.pipe")
    path.symlink_to(f"{path}.pipe")


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


KINDS: dict[str, Callable[[Path], None]] = {
    "FIFO": os.mkfifo,
    "socket": _socket,
    "device": _device,
    "folder": Path.mkdir,
    "link to a FIFO": _link_to_pipe,
    "dangling link": lambda path: path.symlink_to("/nowhere/at/all"),
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
}


def next_manifest(store: Path) -> Path:
    """The manifest that the next commit would write."""
    return store / "log" / f"{len(list((store / 'log').glob('*.json'))) + 1:020}.json"


def _linked(part: str) -> Callable[[Path, Path], None]:
    def make(store: Path, other: Path) -> None:
        path = store / part
        shutil.move(path, f"{store.parent}/aside-{path.name}")
        path.symlink_to(other / part)

    return make


def _replaced(part: str, kind: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    def make(store: Path, _other: Path) -> None:
        path = store / part
        shutil.move(path, f"{store.parent}/aside-{path.name}")
        kind(path)

    return make


def _number(number: int, text: bytes = b"{}") -> Callable[[Path, Path], None]:
    return lambda store, _: (store / "log" / f"{number:020}.json").write_bytes(text) and None


def _again(store: Path, _other: Path) -> None:
    newest = max((store / "log").glob("*.json"))
    (store / "log" / f"{(1 << 63) - 1:020}.json").write_bytes(newest.read_bytes())


def _junk(store: Path, _other: Path) -> None:
    for i in range(1000):
        (store / "log" / f"{i}.json").write_bytes(b"x")
        (store / "objects" / f"summary-{i}.parquet").write_bytes(b"x")
        (store / "objects" / f"files-00000000-0000-8000-8000-{i:012}.parquet").write_bytes(b"x")


def _names(store: Path, _other: Path) -> None:
    for name in (
        "0.json",
        "-1.json",
        "\u0660" * 20 + ".json",
        "0" * 20 + ".json",
        "1e19.json",
        " .json",
        "\n.json",
        "\x1b.json",
    ):
        (store / "log" / name).write_bytes(b"{}")
    for name in ("files-.parquet", "..parquet", "\u202e.parquet", "x" * 200, "files-" + "g" * 36 + ".parquet"):
        (store / "objects" / name).write_bytes(b"{}")
    (store / "more").mkdir()
    os.mkfifo(store / "pipe")


TAMPERINGS = [
    *(
        Tampering(f"{kind} as the next manifest", lambda store, _, make=make: make(next_manifest(store)))
        for kind, make in KINDS.items()
    ),
    *(
        Tampering(
            f"{kind} beside objects",
            lambda store, _, make=make: make(store / "objects" / f"files-{'0' * 8}-0000-8000-8000-{'0' * 12}.parquet"),
        )
        for kind, make in KINDS.items()
    ),
    Tampering(
        "link to another table's manifest",
        lambda store, other: next_manifest(store).symlink_to(max((other / "log").iterdir())),
    ),
    *(Tampering(f"link as {part or 'the store'}", _linked(part), refused=part) for part in ("log", "objects", "")),
    *(
        Tampering(f"{kind} as {part or 'the store'}", _replaced(part, KINDS[kind]), refused=part)
        for part in ("log", "objects", "")
        for kind in ("FIFO", "socket", "device", "dangling link")
    ),
    Tampering("manifest 99999999999999999999", _number(10**20 - 1)),
    Tampering("manifest 9223372036854775807", _number((1 << 63) - 1)),
    Tampering("manifest 9223372036854775808", _number(1 << 63)),
    Tampering("manifest 18446744073709551615", _number((1 << 64) - 1)),
    Tampering("manifest of a large number", _number(10**15)),
    Tampering("newest manifest again, as the last possible", _again),
    Tampering("manifest some numbers ahead", _number(1000)),
    Tampering("manifest 0", _number(0)),
    Tampering("manifest of 1 GB", lambda store, _: _large(next_manifest(store))),
    Tampering("thousands of junk entries", _junk),
    Tampering("names of other forms", _names),
]
"""Each alone is put into a store that was whole."""


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything below a folder, with size and time of its last change."""
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in sorted(folder.rglob("*"))}
