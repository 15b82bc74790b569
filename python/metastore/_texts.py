"""What texts mean: a value that Spark's CAST wrote, a table's location or its name, a name that was mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

from metastore._zones import parse_time_zone
from metastore.errors import InvalidArgument, phrase_suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")


def parse_spark_text(text: str | None, spark_type: str, zone: str = "UTC") -> Any:
    """The Python value of a text that Spark's `CAST(x AS STRING)` made; the text itself where there is none."""
    reader = _reader(spark_type, zone)
    if text is None or reader is None:
        return text
    with suppress(ValueError, ArithmeticError):  # years that Python's types do not reach
        return reader(text)
    return text


def is_location(text: str) -> bool:
    """Whether a text is a path or URI and not the name of a table."""
    return "`" not in text and ("/" in text or text.startswith("."))


def check_probabilities(asked: float | Iterable[float]) -> list[float]:
    """The probabilities that a caller gave, one or several."""
    given = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
    for one in given:
        if not isinstance(one, (Real, Decimal)) or not 0 <= one <= 1:
            raise InvalidArgument("probabilities", f"{one!r} is not a number from 0 to 1")
    if not given:
        raise InvalidArgument("probabilities", "none is given")
    return [float(one) for one in given]


def _reader(spark_type: str, zone: str) -> Callable[[str], Any] | None:
    if spark_type in _INTEGERS:
        return int
    if spark_type in _FLOATS:
        return float
    if spark_type.startswith("decimal("):
        return Decimal
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda text: text == "true",
        "date": date.fromisoformat,
        "timestamp": lambda text: _datetime(text).replace(tzinfo=parse_time_zone(zone)),
        "timestamp_ntz": _datetime,
    }
    return readers.get(spark_type)


def _datetime(text: str) -> datetime:
    whole, _, fraction = text.partition(".")
    moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - the caller knows the zone
    return moment.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else moment


def find_similar_names(name: str, names: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> tuple[str, ...]:
    """The names that look most like one that does not exist, whatever their case."""
    known: dict[str, list[str]] = {}
    for candidate in names:
        known.setdefault(candidate.casefold(), []).append(candidate)
    matches = difflib.get_close_matches(name.casefold(), known, limit, cutoff)
    return tuple(candidate for match in matches for candidate in known[match])


def suggest_names(name: str, names: Iterable[str]) -> str:
    """The hint for a name that was mistyped; empty where none is near."""
    return phrase_suggestion(find_similar_names(name, names))
