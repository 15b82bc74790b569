"""Joining blocks that know different columns of the same data files: their detail objects become one of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.block_writer import write_detail
from metastore.format.data_files import describe_detail
from metastore.format.object_schemas import DETAILS, SCHEMAS
from metastore.format.objects import decode_detail
from metastore.store.block_files import attribute_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.objects import ObjectRef
    from metastore.store.table_store import Store


@dataclass(frozen=True)
class BlockMapping:
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
    def is_renumbered(self) -> bool:
        """Whether ordinals of columns in its detail objects are not those of the merged block."""
        return not np.array_equal(self.columns, np.arange(len(self.columns)))

    def files_with_details(self, kind: str) -> pa.Table:
        """Its data files of which there are details of a kind."""
        return self.files.filter(pc.is_valid(self.files[f"{kind}_name"]))

    def map_files(self, rows: pa.Table) -> NDArray[np.int32]:
        """The new ordinals of the data files in some of its rows."""
        found: NDArray[np.int32] = self.ordinals[rows["file"].to_numpy()]
        return found

    def map_columns(self, name: str, ordinals: NDArray[np.int32]) -> NDArray[np.int32]:
        """The new ordinals of columns in an object."""
        if len(ordinals) and (ordinals.min() < 0 or ordinals.max() >= len(self.columns)):
            raise DamagedObject(name, f"it has rows of columns that are not among {len(self.columns)}")
        found: NDArray[np.int32] = self.columns[ordinals]
        return found


def merge_details(
    files: pa.Table, parts: Sequence[BlockMapping], winners: Callable[[], NDArray[np.int16]], store: Store
) -> pa.Table:
    """The data files of a merged block, each with detail objects of all of its columns.

    Detail objects are written again, to one of each kind, where several parts name different ones of a data file, or
    where the ordinals of columns in them change. The others stay.
    """
    again = _written_again(files.num_rows, parts)
    if not again.any():
        return files
    kept = winners()
    inside = np.where(again, np.cumsum(again) - 1, -1).astype(np.int32)
    for kind in DETAILS:
        named = np.zeros(files.num_rows, bool)
        rows = [SCHEMAS[kind].empty_table()]
        for at, part in enumerate(parts):
            of_part = part.files_with_details(kind)
            of_part = of_part.filter(pa.array(again[part.map_files(of_part)]))
            named[part.map_files(of_part)] = True
            rows += _rows(kind, part, of_part, kept == at, inside, store)
        ref = _write(kind, pa.concat_tables(rows), store) if named.any() else None
        files = _naming(files, kind, ref, again, np.where(named, inside, -1))
    return files


def _written_again(count: int, parts: Sequence[BlockMapping]) -> NDArray[np.bool_]:
    """The data files of which details are written again."""
    again = np.zeros(count, bool)
    for kind in DETAILS:
        names: dict[int, str] = {}
        for part in parts:
            named = part.files_with_details(kind)
            for file, name in zip(part.map_files(named).tolist(), named[f"{kind}_name"].to_pylist(), strict=True):
                again[file] |= part.is_renumbered or names.setdefault(file, name) != name
    return again


def _rows(
    kind: str, part: BlockMapping, named: pa.Table, wins: NDArray[np.bool_], inside: NDArray[np.int32], store: Store
) -> Iterator[pa.Table]:
    """What the objects of a part tell of some data files, where its statistics are kept; each object is read once."""
    for name in named[f"{kind}_name"].unique().to_pylist():
        of_object = named.filter(pc.equal(named[f"{kind}_name"], name))
        with attribute_damage(part.block):
            rows = decode_detail(name, of_object[f"{kind}_sha256"][0].as_py(), store.read_bytes(name))
            columns = part.map_columns(name, rows["column"].to_numpy())
        held = dict(zip(of_object[f"{kind}_file"].to_pylist(), part.map_files(of_object).tolist(), strict=True))
        numbers, places = np.unique(rows["file"].to_numpy(), return_inverse=True)
        files = np.array([held.get(number, -1) for number in numbers.tolist()], np.int32)[places]
        chosen = (files >= 0) & wins[columns, files]
        rows = rows.select(SCHEMAS[kind].names).set_column(0, rows.schema.field("column"), pa.array(columns))
        rows = rows.set_column(1, rows.schema.field("file"), pa.array(inside[files]))
        yield rows.filter(pa.array(chosen)).cast(SCHEMAS[kind])


def _write(kind: str, rows: pa.Table, store: Store) -> ObjectRef | None:
    lists = (rows["column"].to_numpy().astype(np.int64) << 32) | rows["file"].to_numpy()
    together = rows.take(pa.array(np.argsort(lists, kind="stable")))
    return write_detail(store.put, kind, together)


def _naming(
    files: pa.Table, kind: str, ref: ObjectRef | None, again: NDArray[np.bool_], inside: NDArray[np.int32]
) -> pa.Table:
    """Data files of which some name details that were written again: their ordinals in the object; -1: there are none.

    The fields of those that were not written again stay.
    """
    written = pa.array(again)
    named = pa.array(inside >= 0) if ref is not None else pa.array(np.zeros(len(inside), bool))
    facts = {} if ref is None else describe_detail(kind, ref)
    for place, field in enumerate(files.schema):
        if field.name.startswith(f"{kind}_"):
            ordinal = field.name == f"{kind}_file"
            value = pa.array(inside).cast(field.type) if ordinal else pa.scalar(facts.get(field.name), field.type)
            made = pc.if_else(named, value, pa.scalar(None, field.type))
            files = files.set_column(place, field, pc.if_else(written, made, files[field.name]))
    return files
