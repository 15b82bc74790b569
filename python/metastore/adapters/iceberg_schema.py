"""Iceberg's schema JSON read as Spark sees it: leaves, Spark types, defaults."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from metastore.adapters import refusals
from metastore.adapters.table_facts import Refusal
from metastore.format.table_column import Column, encoding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_SPARK_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "variant": "variant",
    "unknown": "void",
}


def _instant(text: str) -> dt.datetime:
    # Python 3.10 reads fractions of three or six digits only; Java writes as many as there are.
    padded = re.sub(r"\.(\d{1,6})\d*", lambda found: "." + found[1].ljust(6, "0"), text)
    return dt.datetime.fromisoformat(padded)


_DEFAULTS: Mapping[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "float": float,
    "double": float,
    "date": dt.date.fromisoformat,
    "timestamp": _instant,
    "timestamptz": lambda text: _instant(text).astimezone(dt.timezone.utc),
    "binary": bytes.fromhex,
    "fixed": bytes.fromhex,
}


@dataclass(frozen=True)
class IcebergLeaf:
    """A leaf of an Iceberg schema.

    Attributes:
        field: Its field id.
        path: Names from the top.
        kind: Iceberg's type, a name or the JSON of a nested type.
        default: Its `initial-default` as JSON, or None.
    """

    field: int
    path: tuple[str, ...]
    kind: Any
    default: Any


def walk_leaves(struct: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[IcebergLeaf]:
    """Walk the leaves of a schema: struct fields are entered, lists and maps are leaves."""
    for field in struct["fields"]:
        path = (*above, field["name"])
        kind = field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from walk_leaves(kind, path)
        else:
            yield IcebergLeaf(field["id"], path, kind, field.get("initial-default"))


def to_spark_type(kind: Any) -> str | None:
    """Translate an Iceberg type to Spark's simple string."""
    if isinstance(kind, dict):
        return _nested_type(kind)
    if kind.startswith("decimal"):
        return str(kind.replace(" ", ""))
    if kind.startswith("fixed"):
        return "binary"
    return _SPARK_TYPES.get(re.split(r"[(\[]", kind)[0])


def _nested_type(kind: Mapping[str, Any]) -> str | None:
    if kind["type"] == "list":
        inner = [to_spark_type(kind["element"])]
    elif kind["type"] == "map":
        inner = [to_spark_type(kind["key"]), to_spark_type(kind["value"])]
    else:
        inner = [to_spark_type(field["type"]) for field in kind["fields"]]
    if any(part is None for part in inner):
        return None
    if kind["type"] == "struct":
        named = (f"{f['name']}:{part}" for f, part in zip(kind["fields"], inner, strict=True))
        return f"struct<{','.join(named)}>"
    return f"{'array' if kind['type'] == 'list' else 'map'}<{','.join(map(str, inner))}>"


def describe_leaves(found: Sequence[IcebergLeaf]) -> tuple[tuple[Column, ...], tuple[Refusal, ...]]:
    """Describe the leaves as columns."""
    described = []
    refused = []
    for leaf in found:
        kind = to_spark_type(leaf.kind)
        text = kind or str(leaf.kind)
        column = Column(str(leaf.field), leaf.path, text, encoding_of(text) if kind else None)
        described.append(column)
        reason = refusals.reason_for_counts_only(text) if kind else refusals.UNKNOWN_TYPE
        if reason is not None:
            refused.append(Refusal(column.name, reason))
    return tuple(described), tuple(refused)


def parse_default(kind: str, value: Any) -> Any:
    """Read a default in Iceberg's single-value JSON."""
    read = _DEFAULTS.get(re.split(r"[(\[]", kind)[0])
    return value if read is None else read(value)
