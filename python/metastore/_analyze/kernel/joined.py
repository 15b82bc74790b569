"""Binary values of many arrays put into one as they come, so that the arrays need not wait beside the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._format.words import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BinaryBuffer:
    """The values of arrays, one behind the other."""

    def __init__(self, values: int = 0, data: int = 0) -> None:
        """Begin with no values."""
        self._data = _Growing(np.uint8, data)
        self._ends = _Growing(np.int64, values)
        self._ends.add(np.zeros(1, np.int64))

    def __len__(self) -> int:
        """The number of values."""
        return len(self._ends) - 1

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self._data.nbytes + self._ends.nbytes

    def add(self, values: pa.Array) -> None:
        """Add the values of a `large_binary` array without nulls."""
        if not len(values):
            return
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        self._ends.add(bounds[1:] + (len(self._data) - bounds[0]))
        if data is not None:
            self._data.add(np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]])

    def finish(self) -> pa.Array:
        """All values as a `large_binary` array with a block of readable bytes behind the last; none is added then."""
        self._data.add(np.zeros(BLOCK, np.uint8))
        buffers = [None, pa.py_buffer(self._ends.values), pa.py_buffer(self._data.values)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


class _Growing:
    """Numbers that grow in place: the system moves the pages of a large array, and copies nothing."""

    def __init__(self, kind: Any, expected: int) -> None:
        self._kind, self._expected = kind, expected
        self._room: NDArray[Any] = np.empty(0, kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        return self._length * self._room.itemsize

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self._length]

    def add(self, more: NDArray[Any]) -> None:
        end = self._length + len(more)
        if not len(self._room):
            self._room = np.empty(max(self._expected, end), self._kind)  # pages that nobody writes take no memory
        elif end > len(self._room):
            self._room.resize(end + end // 8, refcheck=False)  # nobody else has seen it
        self._room[self._length : end] = more
        self._length = end
