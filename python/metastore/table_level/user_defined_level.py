"""User-defined statistics in the driver: sent to the executors, and reduced to table level."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject
from metastore.format.extra_value import decode_value, encode_value
from metastore.format.manifest import FULL
from metastore.kernel.user_defined import UserFunctionError, encode_user_value, merge_user_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.format.table_column import Column
    from metastore.statistics import Statistic
    from metastore.store.block_files import BlockFiles, ColumnKey
    from metastore.table_level.live_statistics import LiveStatistics


_VALUES_AT_ONCE = 1 << 20

ValuesByFile = dict[int, bytes]
"""Stored value by place of the data file."""


class UserDefinedLevel:
    """The user-defined statistics of a snapshot's live files, reduced column by column."""

    def __init__(
        self, live: LiveStatistics, blocks: Sequence[BlockFiles], count: int, statistics: Sequence[Statistic]
    ) -> None:
        """Look which versions there are; no value is read yet. There are so many live files."""
        self._live, self._count = live, count
        self._known = {one.name: one for one in statistics}
        stored = (one.block.statistics for one in blocks if one.block.computed == FULL)
        self._versions = {name: version for versions in stored for name, version in versions.items()}
        """Of each statistic the version that counts: that of the function at hand, else the newest stored."""
        self._has_values = bool(self._versions)
        self._versions |= {name: one.version for name, one in self._known.items()}
        self.failed: dict[str, str] = {}

    def reduce(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        """Reduce what is known of some columns."""
        step = max(1, _VALUES_AT_ONCE // max(self._count, 1)) if self._has_values else len(columns) or 1
        found: dict[ColumnKey, dict[str, bytes]] = {}
        for start in range(0, len(columns), step):
            found |= self._reduced(columns[start : start + step])
        return found

    def _reduced(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        found: dict[tuple[ColumnKey, str], ValuesByFile] = defaultdict(dict)
        for indexed, column, places, extras in self._live.read_user_defined(columns):
            stored = indexed.block.statistics.items()
            names = {name for name, version in stored if self._versions[name] == version}
            for place, extra in zip(places, extras, strict=True):
                for name in names & extra.keys():
                    found[(column.key, column.type), name].setdefault(place, extra[name])
        labels = {(column.key, column.type): column.name for column in columns}
        reduced: dict[ColumnKey, dict[str, bytes]] = defaultdict(dict)
        for (key, name), values in found.items():
            whole = self._whole(name, labels[key], values) if len(values) == self._count else None
            reduced[key][name] = encode_value(None) if whole is None else whole
        return reduced

    def _whole(self, name: str, column: str, values: ValuesByFile) -> bytes | None:
        """The value of the table; None where the files' values do not tell it."""
        if len(values) == 1:
            return next(iter(values.values()))
        statistic = self._known.get(name)
        if statistic is None or statistic.merge is None:
            return None
        try:
            parts = [decode_value(values[place]).as_py() for place in sorted(values)]
            return encode_user_value(merge_user_values(statistic, parts))
        except (UserFunctionError, DamagedObject) as failure:
            self.failed[f"{name}({column})"] = f"merge: {failure}"
            return None
