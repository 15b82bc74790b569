"""Detail objects of merged blocks that have different columns of the same data files: one object of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.block_writer import write_detail
from metastore.format.data_files import describe_detail
from metastore.format.object_schemas import DETAILS, FILES, SCHEMAS
from metastore.format.objects import decode_detail
from metastore.store.block_files import attribute_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.objects import ObjectRef
    from metastore.store.table_store import Store


@dataclass(frozen=True)
class BlockMapping:
    """The new ordinals of a block's data files and columns in a merged block.

    Attributes:
        block: Its id.
        files: The rows of its `files` object that remain.
        ordinals: Its data files' new ordinals, by the old ones; -1 of those that do not remain.
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
        """Select its data files with details of a kind."""
        return self.files.filter(pc.is_valid(self.files[f"{kind}_name"]))

    def map_files(self, rows: pa.Table) -> NDArray[np.int32]:
        """Return the new ordinals of the data files in rows of the block."""
        files: NDArray[np.int32] = self.ordinals[rows["file"].to_numpy()]
        return files

    def map_columns(self, name: str, ordinals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the new ordinals of columns in an object."""
        if len(ordinals) and (ordinals.min() < 0 or ordinals.max() >= len(self.columns)):
            raise DamagedObject(name, f"it has rows of columns that are not among {len(self.columns)}")
        columns: NDArray[np.int32] = self.columns[ordinals]
        return columns


def merge_details(
    files: pa.Table, parts: Sequence[BlockMapping], winners: Callable[[], NDArray[np.int16]], store: Store
) -> pa.Table:
    """Make the data files of a merged block name detail objects of all of its columns.

    Detail objects are written again, to one of each kind, if several parts name different ones of a data file, or if
    the ordinals of columns in them change. The others stay.

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
    new_ordinals = np.where(is_rewritten, np.cumsum(is_rewritten) - 1, -1).astype(np.int32)
    for kind in DETAILS:
        has_details = np.zeros(files.num_rows, bool)
        rows = [SCHEMAS[kind].empty_table()]
        for number, part in enumerate(parts):
            files_of_part = part.files_with_details(kind)
            files_of_part = files_of_part.filter(pa.array(is_rewritten[part.map_files(files_of_part)]))
            has_details[part.map_files(files_of_part)] = True
            is_winner = winning_parts == number
            objects = _read_objects(kind, part, files_of_part, store)
            rows += [rows_of_object.renumber(is_winner, new_ordinals) for rows_of_object in objects]
        ref = _write(kind, pa.concat_tables(rows), store) if has_details.any() else None
        ordinals = np.where(has_details, new_ordinals, -1)
        files = _replace_fields(files, is_rewritten, _build_fields(kind, ref, ordinals))
    return files


def _find_rewritten_files(count: int, parts: Sequence[BlockMapping]) -> NDArray[np.bool_]:
    """Find the data files whose details are written again."""
    is_rewritten = np.zeros(count, bool)
    for kind in DETAILS:
        names: dict[int, str] = {}
        for part in parts:
            rows = part.files_with_details(kind)
            files = part.map_files(rows).tolist()
            for file, name in zip(files, rows[f"{kind}_name"].to_pylist(), strict=True):
                is_rewritten[file] |= part.is_renumbered or names.setdefault(file, name) != name
    return is_rewritten


class _ObjectRows(NamedTuple):
    """Rows of a detail object with the ordinals of their columns and data files in the merged block.

    Attributes:
        kind: The kind of the object.
        rows: The rows.
        columns: The ordinal of the column of each row.
        files: The ordinal of the data file of each row; -1 of one that does not remain.
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


def _read_objects(kind: str, part: BlockMapping, files: pa.Table, store: Store) -> Iterator[_ObjectRows]:
    """Read each object of a kind that these data files of a part name."""
    for name in files[f"{kind}_name"].unique().to_pylist():
        files_of_object = files.filter(pc.equal(files[f"{kind}_name"], name))
        with attribute_damage(part.block):
            rows = decode_detail(name, files_of_object[f"{kind}_sha256"][0].as_py(), store.read_bytes(name))
            columns = part.map_columns(name, rows["column"].to_numpy())
        ordinals_in_object = files_of_object[f"{kind}_file"].to_pylist()
        new_ordinals = dict(zip(ordinals_in_object, part.map_files(files_of_object).tolist(), strict=True))
        distinct_files, inverse = np.unique(rows["file"].to_numpy(), return_inverse=True)
        distinct_ordinals = [new_ordinals.get(file, -1) for file in distinct_files.tolist()]
        yield _ObjectRows(kind, rows, columns, np.array(distinct_ordinals, np.int32)[inverse])


def _write(kind: str, rows: pa.Table, store: Store) -> ObjectRef | None:
    """Write a detail object with the rows in the order of columns and data files."""
    lists = (rows["column"].to_numpy().astype(np.int64) << 32) | rows["file"].to_numpy()
    ordered = rows.take(pa.array(np.argsort(lists, kind="stable")))
    return write_detail(store.put, kind, ordered)


def _build_fields(kind: str, ref: ObjectRef | None, ordinals: NDArray[np.int32]) -> dict[str, pa.Array]:
    """Build the fields of `files` about details of a kind; null for data files without details, of ordinal -1."""
    types = {field.name: field.type for field in FILES if field.name.startswith(f"{kind}_")}
    if ref is None:
        return {name: pa.nulls(len(ordinals), field_type) for name, field_type in types.items()}
    has_no_details = pa.array(ordinals < 0)
    description = describe_detail(kind, ref)
    fields = {}
    for name, field_type in types.items():
        if name == f"{kind}_file":
            fields[name] = pa.array(ordinals, mask=ordinals < 0).cast(field_type)
        else:
            null = pa.scalar(None, field_type)
            fields[name] = pc.if_else(has_no_details, null, pa.scalar(description.get(name), field_type))
    return fields


def _replace_fields(files: pa.Table, is_rewritten: NDArray[np.bool_], fields: dict[str, pa.Array]) -> pa.Table:
    """Replace fields of the data files whose details were written again; those of other files stay."""
    mask = pa.array(is_rewritten)
    for index, field in enumerate(files.schema):
        if field.name in fields:
            files = files.set_column(index, field, pc.if_else(mask, fields[field.name], files[field.name]))
    return files
