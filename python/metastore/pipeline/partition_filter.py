"""Finds the data files of a PARTITION clause."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from metastore.format.table_column import Column, decimal_type
from metastore.format.value_encoding import to_stored_value

if TYPE_CHECKING:
    from metastore.format.data_files import DataFile


_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_DAY = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T](.*))?)?)?")
_TIME = re.compile(r"(\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,6})\d*)?)? ?(.*)")
_TYPED = frozenset({"boolean", "date", "timestamp", "timestamp_ntz"})


def is_in_partition(file: DataFile, field: str, value: Any, column: Column | None, zone: str) -> bool:
    """Return whether the rows of a data file belong to a partition.

    Args:
        file: The data file.
        field: The name of the partition's column.
        value: The clause's value, None for NULL.
        column: The partition's column, if the table has it.
        zone: The session's time zone, for texts of instants.
    """
    file_value = file.partition[field]
    is_null = value in (None, _NULL)
    if file_value is None:
        return is_null
    if is_null:
        return False
    if column is not None and column.type in _TYPED:
        return _is_same_typed_value(file, file_value, value, column, zone)
    return _is_same_text_or_number(file_value, value, column)


def _is_same_typed_value(file: DataFile, file_value: str, value: Any, column: Column, zone: str) -> bool:
    # Texts of instants depend on who wrote them, and in which zone.
    stored = file.constants.get(column.key)
    if stored is None:
        stored = _stored(file_value, column, zone)
    clause_value = _stored(_complete(value, column.type), column, zone)
    return stored is not None and clause_value == stored


def _is_same_text_or_number(file_value: str, value: Any, column: Column | None) -> bool:
    text = str(value)
    if isinstance(value, bool):
        text = text.lower()
    if file_value == text:
        return True
    if column is not None and not _is_number(column):
        return False
    number = _number(text)
    return number is not None and number == _number(file_value)


def _is_number(column: Column) -> bool:
    return column.type in _NUMBERS or decimal_type(column.type) is not None


def _complete(value: Any, column_type: str) -> Any:
    """Write out a text that Spark casts to the type, such as `2024-2-29` or `2024`; other values stay."""
    if not isinstance(value, str):
        return value
    if column_type == "boolean":
        return _BOOLEANS.get(value.strip().lower(), value)
    return _complete_day(value.strip(), column_type) or value


def _complete_day(text: str, column_type: str) -> str | None:
    """Write out a date, with the time if the type has one; None for other texts."""
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    year, month, day_of_month, _ = match.groups(default="1")
    day = f"{year}-{month:>02}-{day_of_month:>02}"
    if column_type == "date":
        return day
    time = _complete_time(match[4] or "0:0")
    return None if time is None else f"{day} {time}"


def _complete_time(text: str) -> str | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second, fraction, zone = match.groups(default="0")
    return f"{hour:>02}:{minute:>02}:{second:>02}.{fraction:<06}{zone}"


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _stored(value: object, column: Column, zone: str) -> object:
    try:
        return to_stored_value(value, column, zone)
    except ValueError:
        return None
