"""User-defined statistics in the driver: sent to the executors, and reduced to table level."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject
from metastore.format.extra_value import decode_value, encode_value
from metastore.format.manifest import FULL
from metastore.kernel.user_defined import UserFunctionError, encode_user_value, merge_user_values
from metastore.store.block_damage import attribute_damage
from metastore.table_level.live_statistics import find_live_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.adapters.table_facts import DataFile
    from metastore.format.table_column import Column
    from metastore.statistics import Statistic
    from metastore.store import Store
    from metastore.store.block_files import BlockFiles, ColumnKey


_VALUES_AT_ONCE = 1 << 20

ValuesByFile = dict[int, bytes]
"""Stored value by place of the data file."""


class UserDefinedLevel:
    """The user-defined statistics of a snapshot's live files, reduced column by column."""

    def __init__(
        self,
        store: Store,
        blocks: Sequence[BlockFiles],
        files: Sequence[DataFile],
        statistics: Sequence[Statistic],
    ) -> None:
        """Look where values are; nothing is read yet."""
        self._store = store
        self._blocks = [one for one in blocks if one.block.computed == FULL and one.block.statistics]
        self._places = {file.key: place for place, file in enumerate(files)}
        self._count = len(files)
        self._known = {one.name: one for one in statistics}
        self.failed: dict[str, str] = {}

    def reduce(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        """Reduce what is known of some columns."""
        step = max(1, _VALUES_AT_ONCE // max(self._count, 1)) if self._blocks else len(columns) or 1
        found: dict[ColumnKey, dict[str, bytes]] = {}
        for start in range(0, len(columns), step):
            found |= self._reduced(columns[start : start + step])
        return found

    def _reduced(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        versions = self._versions()
        found: dict[tuple[ColumnKey, str], ValuesByFile] = defaultdict(dict)
        for indexed in self._blocks:
            names = {name for name, version in indexed.block.statistics.items() if versions[name] == version}
            for key, place, extra in self._rows(indexed, columns):
                for name in names & extra.keys():
                    found[key, name][place] = extra[name]
        labels = {(column.key, column.type): column.name for column in columns}
        reduced: dict[ColumnKey, dict[str, bytes]] = defaultdict(dict)
        for (key, name), values in found.items():
            whole = self._whole(name, labels[key], values) if len(values) == self._count else None
            reduced[key][name] = encode_value(None) if whole is None else whole
        return reduced

    def _versions(self) -> Mapping[str, int]:
        """The version of each statistic that counts: that of the function at hand, else the newest stored."""
        stored = {name: version for indexed in self._blocks for name, version in indexed.block.statistics.items()}
        return stored | {name: one.version for name, one in self._known.items()}

    def _rows(
        self, indexed: BlockFiles, columns: Sequence[Column]
    ) -> Iterator[tuple[ColumnKey, int, Mapping[str, bytes]]]:
        wanted = {(column.key, column.type) for column in columns}
        keys = [(column.key, column.type) for column in indexed.block.columns]
        places = find_live_places(indexed, self._places)
        for ref in indexed.block.summary:
            if not any(keys[ordinal] in wanted for ordinal in ref.columns):
                continue
            with attribute_damage(indexed.block.id):
                rows = self._store.get(ref.object, ["column", "file", "extra"])
            listed = (rows.column(name).to_pylist() for name in ("column", "file", "extra"))
            for ordinal, file, extra in zip(*listed, strict=True):
                if extra and places[file] >= 0 and keys[ordinal] in wanted:
                    yield keys[ordinal], int(places[file]), dict(extra)

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
