"""Keys of other types than the column's: converted where that is exact, refused where it has no meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from metastore._format.columns import decimal_type
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from metastore._format.columns import Column

_NUMBERS = {"tinyint", "smallint", "int", "bigint"}
_FRACTIONS = {"float", "double"}
NOTHING = "void"


def convert_key(name: str, given: str, column: Column) -> tuple[str, str]:
    """SQL of a key as a value of the column, and of whether it is one.

    A key that no value of the column's type equals, such as 3000000000 for an int, is in no row.
    """
    wanted = column.type
    if _family(given) != _family(wanted) and given != NOTHING:
        raise InvalidArgument(
            "keys", f"{column.name} is {given}, the table's column is {wanted}", "Cast one of the two."
        )
    if given == wanted:
        return name, "true"
    value = f"try_cast({name} AS {wanted})"
    if given == NOTHING or _family(wanted) in ("text", wanted):
        return value, "true"
    return value, f"{name} <=> try_cast({value} AS {given})"


def pad_char(value: str, length: int) -> str:
    """SQL of a text with blanks up to the length of CHAR; one that is longer stays."""
    return f"rpad({value}, greatest({length}, length({value})), ' ')"


def list_stored_forms(keys: pa.Table, length: int) -> pa.Table:
    """All that data files may hold where a column of CHAR shows one of some keys: writers pad it or do not."""
    shortest = {None if key is None else key.rstrip(" ") for key in keys[0].to_pylist()}
    texts = sorted(text for text in shortest if text is not None)
    forms: list[str | None] = [
        text.ljust(size) for text in texts for size in range(len(text), max(length, len(text)) + 1)
    ]
    return pa.table({keys.column_names[0]: pa.array(forms + [None] * (None in shortest), keys.schema.field(0).type)})


def _family(spark_type: str) -> str:
    if spark_type in _NUMBERS or decimal_type(spark_type):
        return "number"
    if spark_type in _FRACTIONS:
        return "fraction"
    return "text" if spark_type == "string" or spark_type.startswith(("char(", "varchar(")) else spark_type
