"""Which data files a PARTITION clause means."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from metastore.format.table_column import Column, decimal_type
from metastore.format.value_encoding import to_stored_value

if TYPE_CHECKING:
    from metastore.adapters.table_facts import DataFile


_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_BOOLEANS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(("f", "false", "n", "no", "0"), False)
_DAY = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T](.*))?)?)?")
_TIME = re.compile(r"(\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,6})\d*)?)? ?(.*)")
_TYPED = frozenset({"boolean", "date", "timestamp", "timestamp_ntz"})


def is_in_partition(file: DataFile, field: str, value: Any, column: Column | None, zone: str) -> bool:
    """Tell whether the rows of a data file are those of a partition."""
    text = file.partition[field]
    if text is None or value is None or value == _NULL:
        return text is None and (value is None or value == _NULL)
    asked = str(value).lower() if isinstance(value, bool) else str(value)
    if column is None or column.type in _NUMBERS or decimal_type(column.type):
        return text == asked or _number(text) == _number(asked) is not None
    if column.type not in _TYPED:
        return text == asked
    # Texts of instants depend on who wrote them, and in which zone.
    known = file.constants.get(column.key)
    found = _stored(text, column, zone) if known is None else known
    return found is not None and found == _stored(_spelled_out(value, column.type), column, zone)


def _spelled_out(value: Any, kind: str) -> Any:
    """A text that Spark casts to the type, such as `2024-2-29` or `2024` to a date, in full; others as they are."""
    text = value.strip() if isinstance(value, str) else ""
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), value)
    if not (day := _DAY.fullmatch(text)):
        return value
    year, month, number, rest = day.groups()
    written = f"{year}-{month or '1':>02}-{number or '1':>02}"
    if kind == "date":
        return written
    if not rest:
        return f"{written} 00:00:00"
    if not (time := _TIME.fullmatch(rest)):
        return value
    hour, minute, second, fraction, zone = time.groups()
    return f"{written} {hour:>02}:{minute:>02}:{second or '0':>02}.{fraction or '':<06}{zone}"


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _stored(value: Any, column: Column, zone: str) -> Any:
    try:
        return to_stored_value(value, column, zone)
    except ValueError:
        return None
