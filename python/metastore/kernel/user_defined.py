"""Computes user-defined statistics of one column of one data file, by calling their functions with its values."""

from __future__ import annotations

import pickle
from collections import defaultdict
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
from metastore.kernel.binary_values import is_text_type, list_chunks
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.statistics import Statistic


TOO_LARGE = "the column's values in one data file exceed the memory budget, and the statistic has no merge"
_ROWS_AT_ONCE = 1 << 20
_WIDEST = 16
_OFFSET = 4


@dataclass(frozen=True)
class StatisticPickle:
    """A pickled statistic for an executor, which may not be able to import it.

    Attributes:
        name: The statistic's name.
        version: The statistic's version.
        code: The pickled statistic.
        expression: The key of the statistic's expression; None for a statistic of columns.
    """

    name: str
    version: int
    code: bytes
    expression: str | None = None


class UserFunctionError(Exception):
    """A failure of a user's function, with the reason as its text."""


def unpickle_statistics(pickles: Iterable[StatisticPickle]) -> tuple[tuple[Statistic, ...], dict[str, str]]:
    """Load statistics; return those that can be loaded here, and the reasons why the other ones cannot."""
    statistics = []
    failed = {}
    for statistic in pickles:
        try:
            statistics.append(pickle.loads(statistic.code))  # noqa: S301 - made by the driver for this job, never stored
        except Exception as error:  # noqa: BLE001 - importing a user's module may raise any error
            failed[statistic.name] = f"a worker cannot load it: {_describe_error(error)}"
    return tuple(statistics), failed


def apply_to_constant(
    built_in: ColumnStatistics, column: Column, value: Any, statistics: Sequence[Statistic]
) -> ColumnStatistics:
    """Add user-defined statistics to those of a column with one value in all rows."""
    if not statistics or column.encoding is None:
        return built_in
    kernel = UserDefinedKernel(column, statistics)
    try:
        constant = pa.array([to_python_value(value, column)], column_arrow_type(column))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        return replace(built_in, failed=dict.fromkeys(kernel.names, _describe_error(error)))
    for values in _repeat(constant, built_in.rows or 0):
        kernel.add(values)
    return kernel.finish(built_in)


def _repeat(constant: pa.Array, rows: int) -> Iterator[pa.Array]:
    for start in range(0, rows, _ROWS_AT_ONCE):
        number = min(rows - start, _ROWS_AT_ONCE)
        yield constant.take(pa.array(np.zeros(number, np.int8)))


class UserDefinedKernel:
    """Collects values up to a limit and calls the functions with them.

    If a column has more values than the limit, the functions are called for each part, and their results are merged; a
    statistic without `merge` fails.
    """

    def __init__(self, column: Column, statistics: Sequence[Statistic], limit: int = 64 << 20) -> None:
        self._type = column_arrow_type(column)
        self._statistics = statistics
        self._limit = limit
        self._pieces: list[pa.Array] = []
        self._bytes = 0
        self._parts: dict[str, list[Any]] = defaultdict(list)
        self._failed: dict[str, str] = {}
        self._is_cut = False

    @property
    def names(self) -> list[str]:
        """The names of the statistics."""
        return [statistic.name for statistic in self._statistics]

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add values of the column, dictionary-encoded or not."""
        for chunk in list_chunks(values):
            self._add_chunk(chunk)

    def _add_chunk(self, chunk: pa.Array) -> None:
        try:
            for piece in _split(chunk, self._type, self._limit):
                self._add_piece(piece)
        except pa.ArrowException as error:
            for name in self.names:
                self._failed.setdefault(name, _describe_error(error))

    def finish(self, built_in: ColumnStatistics) -> ColumnStatistics:
        """Add the user-defined statistics to built-in ones."""
        if self._is_cut:
            self._close_part()
        extra = dict(built_in.extra)
        for statistic in self._remaining_statistics():
            try:
                extra[statistic.name] = encode_user_value(self._value(statistic))
            except UserFunctionError as failure:
                self._failed[statistic.name] = str(failure)
        self._pieces = []
        return replace(built_in, extra=extra, failed={**built_in.failed, **self._failed})

    def _remaining_statistics(self) -> list[Statistic]:
        return [statistic for statistic in self._statistics if statistic.name not in self._failed]

    def _add_piece(self, piece: pa.Array) -> None:
        if self._pieces and self._bytes + piece.nbytes > self._limit:
            self._is_cut = True
            self._close_part()
        self._pieces.append(piece)
        self._bytes += piece.nbytes

    def _close_part(self) -> None:
        """Compute the values of the collected part, and release it."""
        part = self._join_pieces()
        self._pieces = []
        self._bytes = 0
        for statistic in self._remaining_statistics():
            if statistic.merge is None:
                self._failed[statistic.name] = TOO_LARGE
                continue
            try:
                self._parts[statistic.name].append(call_user_function(statistic.function, part))
            except UserFunctionError as failure:
                self._failed[statistic.name] = str(failure)

    def _value(self, statistic: Statistic) -> Any:
        if self._is_cut:
            return merge_user_values(statistic, self._parts[statistic.name])
        if not self._pieces:
            return None
        return call_user_function(statistic.function, self._join_pieces())

    def _join_pieces(self) -> pa.Array:
        if len(self._pieces) > 1:
            self._pieces = [pa.concat_arrays(self._pieces)]
        return self._pieces[0]


def call_user_function(function: Any, argument: Any) -> Any:
    """Call a user's function; return its result as a Python value."""
    try:
        result = function(argument)
        if isinstance(result, pa.Scalar):
            return result.as_py()
    except (Exception, SystemExit) as error:  # a user's function may raise any error
        raise UserFunctionError(_describe_error(error)) from error
    return result


def merge_user_values(statistic: Statistic, values: Sequence[Any]) -> Any:
    """Merge the values of parts; None if no part has one."""
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return next(iter(present), None)
    return call_user_function(statistic.merge, present)


def encode_user_value(value: Any) -> bytes:
    """Encode a result as it is stored."""
    try:
        return encode_value(value)
    except ValueError as error:
        raise UserFunctionError(_describe_error(error)) from error


def column_arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type in which functions see a column."""
    decimal = decimal_type(column.type)
    if decimal is not None:
        return pa.decimal128(*decimal)
    if not column.type.startswith("interval"):
        return ARROW_TYPES.get(column.type, pa.string())
    if sortable_values.is_year_month(column):
        return pa.int32()
    return pa.duration("us")


def _split(chunk: pa.Array, arrow_type: pa.DataType, limit: int) -> Iterator[pa.Array]:
    """Split a chunk into plain arrays of the column's type, none much larger than the limit."""
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    rows = max(1, len(chunk) * limit // max(_decoded_bytes(chunk), 1))
    for start in range(0, len(chunk), rows):
        yield _to_type(chunk.slice(start, rows), arrow_type)


def _to_type(piece: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(piece.type):
        piece = piece.dictionary_decode()
    if pa.types.is_string(arrow_type) and pa.types.is_large_binary(piece.type):
        piece = piece.cast(pa.binary())
    if pa.types.is_integer(piece.type) and pa.types.is_duration(arrow_type):
        return piece.cast(pa.int64()).view(arrow_type)
    return piece.cast(arrow_type)


def _decoded_bytes(chunk: pa.Array) -> int:
    if not pa.types.is_dictionary(chunk.type):
        return int(chunk.nbytes)
    if not is_text_type(chunk.dictionary.type):
        return _WIDEST * len(chunk)
    lengths = pc.binary_length(chunk.dictionary)
    return int(pc.sum(lengths.take(chunk.indices)).as_py() or 0) + _OFFSET * len(chunk)


def _describe_error(error: BaseException) -> str:
    name = type(error).__name__
    line = first_line(error)
    return name if line == name else f"{name}: {line}"
