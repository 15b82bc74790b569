"""User-defined statistics as columns of answers."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.errors import DamagedObject
from metastore.format.extra_value import decode_value
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_LOG = get_logger(__name__)

COLUMN = "user_defined"
"""The column of the SQL function with all of them: a map from name to JSON."""

_NUMBERS_AS_TEXT = ("NaN", "Infinity", "-Infinity")

Values = dict[str, "pa.Scalar"]


def decode_user_defined(extra: Iterable[tuple[str, bytes]] | None) -> Values:
    """Decode the user-defined statistics in a row's `extra`; damaged ones are left out with a warning."""
    values: Values = {}
    for name, data in extra or ():
        try:
            values[name] = decode_value(data)
        except DamagedObject as damage:
            _LOG.warning("statistic %s is passed over: %s", name, damage)
    return values


def to_json_texts(values: Values) -> dict[str, str] | None:
    """Return the values as JSON, as the SQL function shows them; None if there are none."""
    if not values:
        return None
    return {name: _to_json(value) for name, value in values.items()}


def from_json_texts(texts: Mapping[str, str] | None) -> dict[str, Any]:
    """Python values of the JSON that the SQL function shows."""
    return {name: _from_json(text) for name, text in (texts or {}).items()}


def _from_json(text: str) -> Any:
    value = json.loads(text)
    if value in _NUMBERS_AS_TEXT:  # JSON has no such numbers: Jackson writes them as texts
        return float(value)
    return value


def infer_fields(rows: Sequence[Values], reserved: Iterable[str]) -> list[pa.Field]:
    """Infer the columns of user-defined statistics; values without a common type become texts."""
    types: dict[str, set[pa.DataType]] = defaultdict(set)
    for row in rows:
        for name, value in row.items():
            types_of_name = types[name]
            if value.is_valid:
                types_of_name.add(value.type)
    names = sorted(types.keys() - set(reserved))
    return [pa.field(name, _find_common_type(types[name])) for name in names]


def cast_scalar(value: pa.Scalar | None, field: pa.Field) -> Any:
    """Cast a value to the type of its column, as a Python value."""
    if value is None or not value.is_valid:
        return None
    if value.type == field.type:
        return value.as_py()
    if pa.types.is_string(field.type):
        return _to_json(value)
    return value.cast(field.type).as_py()


def _to_json(value: pa.Scalar) -> str:
    return json.dumps(value.as_py(), default=str)


def _find_common_type(types: set[pa.DataType]) -> pa.DataType:
    if len(types) == 1:
        return next(iter(types))
    integers = set(filter(pa.types.is_integer, types))
    floats = set(filter(pa.types.is_floating, types))
    if not types or types != integers | floats:
        return pa.string()
    return pa.float64() if floats else pa.int64()
