"""Joining blocks that know different columns of the same data files: their detail objects become one of each kind."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._format.detail_layout import histograms_layout, lists_layout, sketches_layout
from metastore._format.objects import decode_detail
from metastore._format.schemas import DETAILS, SCHEMAS
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore._format.objects import ObjectRef
    from metastore._store.store import Store

_LAYOUTS = {"sketches": sketches_layout, "frequencies": lists_layout, "histograms": histograms_layout}

_Named = tuple[int, tuple[str | None, ...]]
"""A part, and the names of its detail objects of one data file, by kind."""
_Cell = tuple[_Named, ...]


class DamagedBlock(Exception):  # noqa: N818 - caught by the merging, never shown
    """A block that cannot be merged: an object of it is not what was written."""

    def __init__(self, block: str, reason: str) -> None:
        super().__init__(block, reason)
        self.block = block
        self.reason = reason


@contextmanager
def damage_of(block: str) -> Iterator[None]:
    """Says of which block an object is that is not what was written."""
    try:
        yield
    except DamagedObject as damage:
        raise DamagedBlock(block, str(damage)) from damage


@dataclass(frozen=True)
class Part:
    """What a block brings into a merged one.

    Attributes:
        block: Its id.
        files: The rows of its `files` object that are kept.
        ordinals: Its data files' new ordinals, by the old ones; -1 of those that are not kept.
        columns: Its columns' new ordinals, by the old ones.
    """

    block: str
    files: pa.Table
    ordinals: NDArray[np.int32]
    columns: NDArray[np.int32]

    @property
    def moved(self) -> bool:
        """Whether ordinals of columns in its detail objects are not those of the merged block."""
        return not np.array_equal(self.columns, np.arange(len(self.columns)))

    def of_columns(self, name: str, ordinals: NDArray[np.int32]) -> NDArray[np.int32]:
        """The new ordinals of columns in an object.

        Raises:
            DamagedObject: The object has rows of columns that the block does not have.
        """
        if len(ordinals) and (ordinals.min() < 0 or ordinals.max() >= len(self.columns)):
            raise DamagedObject(name, f"it has rows of columns that are not among {len(self.columns)}")
        found: NDArray[np.int32] = self.columns[ordinals]
        return found


def joined(files: pa.Table, parts: Sequence[Part], winners: Callable[[], NDArray[np.int16]], store: Store) -> pa.Table:
    """The data files of a merged block, each with detail objects of all of its columns.

    Detail objects are written again where several parts name different ones of a data file, or where the ordinals of
    columns in them change. The others stay.

    Args:
        files: The rows of the merged `files` object; each names the latest detail objects.
        parts: The blocks, earlier ones first.
        winners: Tells, by column and data file of the merged block, which part's statistics are kept; -1: none.
        store: Where objects are, and go.

    Raises:
        DamagedBlock: A detail object is not what was written.
    """
    cells = _cells(files.num_rows, parts)
    if not cells:
        return files
    kept = winners()
    for place, kind in enumerate(DETAILS):
        made: dict[int, Mapping[str, Any]] = {}
        for cell, ordinals in cells.items():
            ref = _write(kind, [(parts[at], at, names[place]) for at, names in cell], ordinals, kept, store)
            made |= {file: _fields(kind, ref, inside) for inside, file in enumerate(ordinals)}
        files = _naming(files, kind, made)
    return files


def _cells(count: int, parts: Sequence[Part]) -> dict[_Cell, list[int]]:
    """The data files of which details are written again, by the objects that they are in now."""
    named: list[list[_Named]] = [[] for _ in range(count)]
    for at, part in enumerate(parts):
        columns = (part.files[name].to_pylist() for name in ("file", *(f"{kind}_name" for kind in DETAILS)))
        for file, *names in zip(*columns, strict=True):
            if any(names):
                named[part.ordinals[file]].append((at, tuple(names)))
    cells: dict[_Cell, list[int]] = defaultdict(list)
    for file, found in enumerate(named):
        several = any(len({names[place] for _, names in found} - {None}) > 1 for place in range(len(DETAILS)))
        if several or any(parts[at].moved for at, _ in found):
            cells[tuple(found)].append(file)
    return cells


def _write(
    kind: str,
    sources: Sequence[tuple[Part, int, str | None]],
    ordinals: Sequence[int],
    kept: NDArray[np.int16],
    store: Store,
) -> ObjectRef | None:
    """Write the details of some data files, of each column those of the part whose statistics are kept."""
    named = [(part, at, name) for part, at, name in sources if name is not None]
    if not named:
        return None
    rows = pa.concat_tables(_rows(kind, *source, ordinals, kept, store) for source in named)
    # An object of value lists without rows says that values were counted.
    if not rows.num_rows and kind != "frequencies":
        return None
    lists = (rows["column"].to_numpy().astype(np.int64) << 32) | rows["file"].to_numpy()
    together = rows.take(pa.array(np.argsort(lists, kind="stable")))
    return store.put(kind, *_LAYOUTS[kind](together))


def _rows(
    kind: str, part: Part, at: int, name: str, ordinals: Sequence[int], kept: NDArray[np.int16], store: Store
) -> pa.Table:
    files = part.files
    inside = np.full(kept.shape[1], -1, np.int32)
    inside[list(ordinals)] = np.arange(len(ordinals))
    wanted = files.filter(pa.array(inside[part.ordinals[files["file"].to_numpy()]] >= 0))
    held = dict(zip(wanted[f"{kind}_file"].to_pylist(), part.ordinals[wanted["file"].to_numpy()].tolist(), strict=True))
    with damage_of(part.block):
        rows = decode_detail(name, wanted[f"{kind}_sha256"][0].as_py(), store.raw(name))
        columns = part.of_columns(name, rows["column"].to_numpy())
    new = np.array([held.get(file, -1) for file in rows["file"].to_pylist()], np.int32)
    chosen = (new >= 0) & (kept[columns, new] == at)
    rows = rows.select(SCHEMAS[kind].names).set_column(0, rows.schema.field("column"), pa.array(columns))
    return rows.set_column(1, rows.schema.field("file"), pa.array(inside[new])).filter(pa.array(chosen))


def _fields(kind: str, ref: ObjectRef | None, inside: int) -> Mapping[str, Any]:
    if ref is None:
        return {}
    return {
        f"{kind}_name": ref.name,
        f"{kind}_length": ref.length,
        f"{kind}_sha256": ref.sha256,
        f"{kind}_footer_length": ref.footer_length,
        f"{kind}_footer_sha256": ref.footer_sha256,
        f"{kind}_file": inside,
    }


def _naming(files: pa.Table, kind: str, made: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    for place, field in enumerate(files.schema):
        if field.name.startswith(f"{kind}_"):
            values = files[field.name].to_pylist()
            for file, fields in made.items():
                values[file] = fields.get(field.name)
            files = files.set_column(place, field, pa.array(values, field.type))
    return files
