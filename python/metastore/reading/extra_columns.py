"""User-defined statistics as answers show them: values of the store, as columns beside the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.errors import DamagedObject
from metastore.format.extra_value import decode_value
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_LOG = get_logger(__name__)

COLUMN = "user_defined"
"""The column of the SQL function: a map from name to the value as JSON."""

_NUMBERS_AS_TEXT = ("NaN", "Infinity", "-Infinity")

Values = dict[str, "pa.Scalar"]


def decode_user_defined(extra: Iterable[tuple[str, bytes]] | None) -> Values:
    """The user-defined statistics in a row's `extra`; those that are damaged are passed over."""
    found: Values = {}
    for name, data in extra or ():
        try:
            found[name] = decode_value(data)
        except DamagedObject as damage:
            _LOG.warning("statistic %s is passed over: %s", name, damage)
    return found


def to_json_texts(found: Values) -> dict[str, str] | None:
    """The same as JSON, as the SQL function shows them."""
    return {name: json.dumps(value.as_py(), default=str) for name, value in found.items()} or None


def from_json_texts(found: Mapping[str, str] | None) -> dict[str, Any]:
    """What the SQL function shows as Python values."""
    values = {name: json.loads(text) for name, text in (found or {}).items()}
    # JSON has no such numbers: Jackson writes them as texts.
    return {name: float(value) if value in _NUMBERS_AS_TEXT else value for name, value in values.items()}


def infer_fields(rows: Sequence[Values], taken: Iterable[str]) -> list[pa.Field]:
    """The columns that the statistics of some rows make: of their common type, or text where they have none."""
    names = sorted({name for row in rows for name in row} - set(taken))
    return [pa.field(name, _common_type([row[name] for row in rows if name in row])) for name in names]


def cast_scalar(value: pa.Scalar | None, field: pa.Field) -> Any:
    """A value as the Python value of its column's type."""
    if value is None or not value.is_valid:
        return None
    if value.type == field.type:
        return value.as_py()
    if pa.types.is_string(field.type):
        return json.dumps(value.as_py(), default=str)
    return value.cast(field.type).as_py()


def _common_type(found: Sequence[pa.Scalar]) -> pa.DataType:
    kinds = {value.type for value in found if value.is_valid}
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds and all(pa.types.is_integer(kind) for kind in kinds):
        return pa.int64()
    if kinds and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    return pa.string()
