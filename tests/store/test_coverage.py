"""Blocks whose statistics stand in other blocks too."""

from __future__ import annotations

import pyarrow as pa

from metastore.format.data_files import DataFile, FileKey
from metastore.format.manifest import Block
from metastore.format.object_schemas import FILES
from metastore.format.table_column import Column
from metastore.store.block_files import BlockFiles
from metastore.store.coverage import Coverage

FIRST = (Column(key="1", path=("a",), type="int", encoding="long"),)
SECOND = (Column(key="2", path=("b",), type="int", encoding="long"),)
BOTH = (*FIRST, *SECOND)
LIVE = (DataFile(path="x", size=10, rows=1, format="parquet"), DataFile(path="y", size=10, rows=1, format="parquet"))


def indexed(name, paths, columns, computed="full", statistics=None):
    rows = [{"file": file, "path": path, "size": 10, "rows": 1} for file, path in enumerate(paths)]
    ordinals = {FileKey(path, 10): file for file, path in enumerate(paths)}
    block = Block(id=name, computed=computed, columns=columns, files=None, summary=(), statistics=statistics or {})
    return BlockFiles(block, pa.Table.from_pylist(rows, FILES), ordinals, {})


def test_a_block_is_left_out_when_deeper_ones_hold_all_columns_of_all_its_files_together():
    shallow = indexed("shallow", "xy", BOTH, "footer")
    first, second = indexed("first", "xy", FIRST), indexed("second", "xy", SECOND)
    assert Coverage([shallow, first, second], LIVE).find_redundant_blocks() == {"shallow"}
    assert Coverage([shallow, first], LIVE).find_redundant_blocks() == set()
    assert Coverage([shallow, first, indexed("second", "x", SECOND)], LIVE).find_redundant_blocks() == set()
    assert Coverage([first, shallow], LIVE).adds_knowledge(second.block, second.files, BOTH)
    assert not Coverage([first, second], LIVE).adds_knowledge(shallow.block, shallow.files, BOTH)


def test_a_block_is_left_out_when_later_ones_have_its_statistics_and_columns():
    old = indexed("old", "x", FIRST)
    with_statistic = indexed("with", "xy", BOTH, statistics={"mine": 1})
    assert Coverage([old, with_statistic], LIVE).find_redundant_blocks() == {"old"}
    assert Coverage([with_statistic, old], LIVE).find_redundant_blocks() == set()
    with_other = indexed("other", "x", FIRST, statistics={"other": 1})
    assert Coverage([with_other, with_statistic], LIVE).find_redundant_blocks() == set()
