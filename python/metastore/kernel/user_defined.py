"""User-defined statistics of one column of one data file: the column's values are handed to their functions."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.extra_value import encode_value
from metastore.format.table_column import Column, decimal_type
from metastore.format.value_encoding import ARROW_TYPES
from metastore.format.value_rendering import to_python_value
from metastore.kernel.binary_values import is_text_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.statistics import Statistic


TOO_LARGE = "the column's values in one data file exceed the memory budget, and the statistic has no merge"
_ROWS_AT_ONCE = 1 << 20
_WIDEST, _OFFSET = 16, 4


@dataclass(frozen=True)
class StatisticPickle:
    """A statistic on its way to an executor, where it may turn out not to be importable.

    Attributes:
        expression: The key of the expression that it is of; None: it is of columns.
    """

    name: str
    version: int
    code: bytes
    expression: str | None = None


class UserFunctionError(Exception):
    """A user's function failed; the text says how."""


def unpickle_statistics(shipped: Iterable[StatisticPickle]) -> tuple[tuple[Statistic, ...], dict[str, str]]:
    """The statistics that can be loaded here, and why the others cannot."""
    found, failed = [], {}
    for one in shipped:
        try:
            found.append(pickle.loads(one.code))  # noqa: S301 - made by the driver for this job, never stored
        except Exception as error:  # noqa: BLE001 - whatever a user's module does when it is imported
            failed[one.name] = f"a worker cannot load it: {_first_line(error)}"
    return tuple(found), failed


def apply_to_constant(
    found: ColumnStatistics, column: Column, value: Any, statistics: Sequence[Statistic]
) -> ColumnStatistics:
    """The statistics of a column with one value in all rows, user-defined ones added."""
    if not statistics or column.encoding is None:
        return found
    own = UserDefinedKernel(column, statistics)
    try:
        one = pa.array([to_python_value(value, column)], column_arrow_type(column))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        return replace(found, failed=dict.fromkeys((s.name for s in statistics), _first_line(error)))
    left = found.rows or 0
    while left:
        step = min(left, _ROWS_AT_ONCE)
        own.add(one.take(pa.array(np.zeros(step, np.int8))))
        left -= step
    return own.finish(found)


class UserDefinedKernel:
    """Collects values up to a limit and calls the functions with them.

    Where a column has more values than the limit, the functions are called for one part after the other and their
    results merged; a statistic without `merge` fails then, and says so.
    """

    def __init__(self, column: Column, statistics: Sequence[Statistic], limit: int = 64 << 20) -> None:
        """Begin with no values."""
        self._kind = column_arrow_type(column)
        self._statistics = statistics
        self._limit = limit
        self._held: list[pa.Array] = []
        self._bytes = 0
        self._parts: dict[str, list[Any]] = {one.name: [] for one in statistics}
        self._failed: dict[str, str] = {}
        self._is_cut = False

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add values of the column, dictionary-encoded or not."""
        for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            try:
                for piece in _pieces(chunk, self._kind, self._limit):
                    self._hold(piece)
            except pa.ArrowException as error:
                self._fail_all(_first_line(error))

    def finish(self, found: ColumnStatistics) -> ColumnStatistics:
        """The same statistics with the user-defined ones."""
        if self._is_cut:
            self._close()
        values = {one.name: self._value(one) for one in self._statistics if one.name not in self._failed}
        self._held = []
        extra = {name: data for name, data in values.items() if data is not None}
        return replace(found, extra={**found.extra, **extra}, failed={**found.failed, **self._failed})

    def _hold(self, piece: pa.Array) -> None:
        if self._held and self._bytes + piece.nbytes > self._limit:
            self._is_cut = True
            self._close()
        self._held.append(piece)
        self._bytes += piece.nbytes

    def _close(self) -> None:
        """Compute the values of the part that is held, and let it go."""
        part, self._held, self._bytes = self._joined(), [], 0
        for one in self._statistics:
            if one.name in self._failed:
                continue
            if one.merge is None:
                self._failed[one.name] = TOO_LARGE
                continue
            try:
                self._parts[one.name].append(call_user_function(one.function, part))
            except UserFunctionError as failure:
                self._failed[one.name] = str(failure)

    def _value(self, one: Statistic) -> bytes | None:
        try:
            if self._is_cut:
                return encode_user_value(merge_user_values(one, self._parts[one.name]))
            values = self._joined()
            return encode_user_value(call_user_function(one.function, values) if len(values) else None)
        except UserFunctionError as failure:
            self._failed[one.name] = str(failure)
            return None

    def _joined(self) -> pa.Array:
        if len(self._held) > 1:
            self._held = [pa.concat_arrays(self._held)]
        return self._held[0] if self._held else pa.array([], self._kind)

    def _fail_all(self, reason: str) -> None:
        for one in self._statistics:
            self._failed.setdefault(one.name, reason)


def call_user_function(function: Any, argument: Any) -> Any:
    """The result of a user's function as a Python value."""
    try:
        result = function(argument)
        return result.as_py() if isinstance(result, pa.Scalar) else result
    except (Exception, SystemExit) as error:  # its faults are its own
        raise UserFunctionError(_first_line(error)) from error


def merge_user_values(statistic: Statistic, values: Sequence[Any]) -> Any:
    """The value of the whole from those of its parts; None where none has one."""
    known = [value for value in values if value is not None]
    return call_user_function(statistic.merge, known) if len(known) > 1 else known[0] if known else None


def encode_user_value(value: Any) -> bytes:
    """A result as it is stored."""
    try:
        return encode_value(value)
    except ValueError as error:
        raise UserFunctionError(_first_line(error)) from error


def column_arrow_type(column: Column) -> pa.DataType:
    """The Arrow type in which functions see a column."""
    decimal = decimal_type(column.type)
    if decimal is not None:
        return pa.decimal128(*decimal)
    if column.type.startswith("interval"):
        return pa.int32() if sortable_values.is_year_month(column) else pa.duration("us")
    return ARROW_TYPES.get(column.type, pa.string())


def _pieces(chunk: pa.Array, kind: pa.DataType, limit: int) -> Iterator[pa.Array]:
    """Plain arrays of the column's type, none much larger than the limit."""
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    rows = max(1, len(chunk) * limit // max(_decoded_bytes(chunk), 1))
    for start in range(0, len(chunk), rows):
        piece = chunk.slice(start, rows)
        yield _plain(piece, kind)


def _plain(piece: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(piece.type):
        piece = piece.dictionary_decode()
    if pa.types.is_string(kind) and pa.types.is_large_binary(piece.type):
        piece = piece.cast(pa.binary())
    if pa.types.is_integer(piece.type) and pa.types.is_duration(kind):
        return piece.cast(pa.int64()).view(kind)
    return piece.cast(kind)


def _decoded_bytes(chunk: pa.Array) -> int:
    if not pa.types.is_dictionary(chunk.type):
        return int(chunk.nbytes)
    if not is_text_type(chunk.dictionary.type):
        return _WIDEST * len(chunk)
    lengths = pc.binary_length(chunk.dictionary)
    return int(pc.sum(lengths.take(chunk.indices)).as_py() or 0) + _OFFSET * len(chunk)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
