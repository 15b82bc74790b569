"""Merges the detail objects of blocks that have different columns of the same data files: one object of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.block_writer import write_detail
from metastore.format.data_files import describe_detail
from metastore.format.object_schemas import DETAILS, SCHEMAS, list_detail_fields
from metastore.format.objects import decode_detail
from metastore.store.block_files import attribute_damage, number_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Block
    from metastore.format.objects import ObjectRef
    from metastore.store.stored_objects import StoredObjects


@dataclass(frozen=True)
class BlockMapping:
    """The new ordinals of a block's data files and columns in a merged block.

    Attributes:
        block: The block.
        files: The rows of its `files` object that remain.
        ordinals: Old ordinals of its data files to the new ones; -1 for removed files.
        columns: Old ordinals of its columns to the new ones.
    """

    block: Block
    files: pa.Table
    ordinals: NDArray[np.int32]
    columns: NDArray[np.int32]

    @property
    def is_renumbered(self) -> bool:
        """Whether the ordinals of its columns change in the merged block."""
        return not np.array_equal(self.columns, np.arange(len(self.columns)))

    def files_with_details(self, kind: str) -> pa.Table:
        """Select its data files with details of a kind."""
        return self.files.filter(pc.is_valid(self.files[f"{kind}_name"]))

    def map_listed_files(self, files: pa.Table) -> NDArray[np.int32]:
        """Return the new ordinals of some of its data files."""
        ordinals: NDArray[np.int32] = self.ordinals[files["file"].to_numpy()]
        return ordinals

    def map_files(self, name: str, ordinals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the new ordinals of data files in an object."""
        return _map_ordinals(name, ordinals, self.ordinals, "data files")

    def map_columns(self, name: str, ordinals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the new ordinals of columns in an object."""
        return _map_ordinals(name, ordinals, self.columns, "columns")


def _map_ordinals(
    name: str, ordinals: NDArray[np.int32], new_ordinals: NDArray[np.int32], things: str
) -> NDArray[np.int32]:
    """Return the new ordinals by the ordinals in an object; raise an error if they are beyond those of its block."""
    count = len(new_ordinals)
    if np.any((ordinals < 0) | (ordinals >= count)):
        raise DamagedObject(name, f"it has rows of {things} that are not among {count}")
    mapped: NDArray[np.int32] = new_ordinals[ordinals]
    return mapped


def merge_details(
    files: pa.Table, parts: Sequence[BlockMapping], winners: Callable[[], NDArray[np.int16]], store: StoredObjects
) -> pa.Table:
    """Let the data files of a merged block name detail objects with all of its columns.

    Detail objects are written again if parts name different objects for a data file, or if ordinals of columns change.
    There is one new object of each kind. Other detail objects stay.

    Args:
        files: The data files of the merged block.
        parts: The blocks, older ones first.
        winners: Computes the number of the part whose statistics remain, by column and data file.
        store: Where objects are read and written.
    """
    is_rewritten = _find_rewritten_files(files.num_rows, parts)
    if not is_rewritten.any():
        return files
    winning_parts = winners()
    positions = np.cumsum(is_rewritten) - 1
    new_ordinals = np.where(is_rewritten, positions, -1).astype(np.int32)
    for kind in DETAILS:
        has_details = np.zeros(files.num_rows, bool)
        rows = [SCHEMAS[kind].empty_table()]
        for number, part in enumerate(parts):
            files_of_part = part.files_with_details(kind)
            files_of_part = files_of_part.filter(pa.array(is_rewritten[part.map_listed_files(files_of_part)]))
            has_details[part.map_listed_files(files_of_part)] = True
            is_winner = winning_parts == number
            objects = _read_objects(kind, part, files_of_part, store)
            rows += [rows_of_object.renumber(is_winner, new_ordinals) for rows_of_object in objects]
        ref = _write(kind, pa.concat_tables(rows), store) if has_details.any() else None
        ordinals = np.where(has_details, new_ordinals, -1)
        files = replace_detail_fields(files, kind, _describe_details(kind, ref, ordinals), is_rewritten)
    return files


def _find_rewritten_files(count: int, parts: Sequence[BlockMapping]) -> NDArray[np.bool_]:
    """Find the data files whose details are written again."""
    is_rewritten = np.zeros(count, bool)
    for kind in DETAILS:
        tables = []
        for part in parts:
            rows = part.files_with_details(kind)
            files = part.map_listed_files(rows)
            is_rewritten[files] |= part.is_renumbered
            tables.append(pa.table({"file": files, "name": rows[f"{kind}_name"]}))
        names = pa.concat_tables(tables).group_by("file").aggregate([("name", "count_distinct")])
        has_several = pc.greater(names["name_count_distinct"], 1)
        is_rewritten[names["file"].filter(has_several).to_numpy()] = True
    return is_rewritten


class _ObjectRows(NamedTuple):
    """Rows of a detail object with the ordinals of their columns and data files in the merged block.

    Attributes:
        kind: The kind of the object.
        rows: The rows.
        columns: The ordinal of the column of each row.
        files: The ordinal of the data file of each row; -1 for a removed file.
    """

    kind: str
    rows: pa.Table
    columns: NDArray[np.int32]
    files: NDArray[np.int32]

    def renumber(self, remains: NDArray[np.bool_], new_ordinals: NDArray[np.int32]) -> pa.Table:
        """Select the rows that remain, by column and data file, and number data files as in the new object."""
        schema = SCHEMAS[self.kind]
        is_selected = (self.files >= 0) & remains[self.columns, self.files]
        rows = self.rows.select(schema.names)
        rows = rows.set_column(0, self.rows.schema.field("column"), pa.array(self.columns))
        rows = rows.set_column(1, self.rows.schema.field("file"), pa.array(new_ordinals[self.files]))
        return rows.filter(pa.array(is_selected)).cast(schema)


def _read_objects(kind: str, part: BlockMapping, files: pa.Table, store: StoredObjects) -> Iterator[_ObjectRows]:
    """Read each object of a kind that these data files of a part name."""
    for name in files[f"{kind}_name"].unique().to_pylist():
        files_of_object = files.filter(pc.equal(files[f"{kind}_name"], name))
        with attribute_damage(part.block.id):
            digest = files_of_object[f"{kind}_sha256"][0].as_py()
            rows = decode_detail(name, digest, store.read_bytes(name))
            columns = part.map_columns(name, rows["column"].to_numpy())
        ordinals_in_object = files_of_object[f"{kind}_file"].combine_chunks()
        positions = pc.index_in(rows["file"].combine_chunks(), ordinals_in_object)
        new_ordinals = pa.array(part.map_listed_files(files_of_object)).take(positions)
        yield _ObjectRows(kind, rows, columns, new_ordinals.fill_null(-1).to_numpy())


def _write(kind: str, rows: pa.Table, store: StoredObjects) -> ObjectRef | None:
    """Write a detail object with the rows in the order of columns and data files."""
    order = np.argsort(number_cells(rows), kind="stable")
    ordered = rows.take(pa.array(order))
    return write_detail(store.put, kind, ordered)


def _describe_details(kind: str, ref: ObjectRef | None, ordinals: NDArray[np.int32]) -> pa.Table:
    """Build the fields of `files` about details of a kind; null for ordinal -1, a data file without details."""
    if ref is None:
        return pa.table({field.name: pa.nulls(len(ordinals), field.type) for field in list_detail_fields(kind)})
    has_details = pa.array(ordinals >= 0)
    fields = {f"{kind}_file": pa.array(ordinals, pa.int32(), mask=ordinals < 0)}
    for name, value in describe_detail(kind, ref).items():
        fields[name] = pc.if_else(has_details, pa.scalar(value), None)
    return pa.table(fields)


def replace_detail_fields(files: pa.Table, kind: str, fields: pa.Table, is_replaced: NDArray[np.bool_]) -> pa.Table:
    """Replace the fields about details of a kind in some rows of `files`; the other rows stay."""
    mask = pa.array(is_replaced)
    for field in list_detail_fields(kind):
        index = files.schema.get_field_index(field.name)
        values = pc.if_else(mask, fields[field.name], files[field.name])
        files = files.set_column(index, field, values)
    return files
