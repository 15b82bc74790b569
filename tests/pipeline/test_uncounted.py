"""Blocks of earlier versions, whose data files have no value lists, are not all that there is to know."""

from dataclasses import replace

import pyarrow as pa

from metastore.adapters.table_facts import DataFile
from metastore.format.data_files import FileKey
from metastore.format.manifest import Block
from metastore.format.object_schemas import FILES
from metastore.format.table_column import Column
from metastore.pipeline.plan import plan_work
from metastore.pipeline.request import AnalyzeRequest
from metastore.store.block_files import BlockFiles
from metastore.store.coverage import Coverage

COLUMNS = (Column("1", ("a",), "int", "long"),)
LIVE = (DataFile("x", 10, 1, "parquet"), DataFile("y", 10, 1, "parquet"))
LIST = "frequencies-00000000-0000-8000-8000-000000000000.parquet"


def indexed(name, lists, computed="full"):
    rows = [
        {"file": i, "path": path, "size": 10, "rows": 1, "frequencies_name": LIST if counted else None}
        for i, (path, counted) in enumerate(lists.items())
    ]
    block = Block(name, computed, COLUMNS, None, ())
    return BlockFiles(block, pa.Table.from_pylist(rows, FILES), {FileKey(p, 10): i for i, p in enumerate(lists)}, {})


def missing(*blocks, depth="full"):
    request = AnalyzeRequest(depth, COLUMNS, LIVE)
    work = plan_work(Coverage(blocks, LIVE), [request])
    return [(part.columns, [file.path for file in part.files]) for part in work]


def test_files_without_value_lists_are_analyzed_again():
    assert missing(indexed("old", {"x": False, "y": True})) == [(COLUMNS, ["x"])]
    assert missing(indexed("old", {"x": False}), indexed("new", {"x": True, "y": True})) == []


def test_files_without_value_lists_are_as_deep_as_footers():
    assert missing(indexed("old", {"x": False, "y": True}), depth="footer") == []


def test_blocks_without_value_lists_are_left_out_when_there_are_later_ones_with_them():
    old, new = indexed("old", {"x": False}), indexed("new", {"x": True, "y": True})
    assert Coverage([old, new], LIVE).find_redundant_blocks() == {"old"}
    assert Coverage([new, indexed("worse", {"x": False})], LIVE).find_redundant_blocks() == set()
    assert Coverage([old, indexed("new", {"y": True})], LIVE).find_redundant_blocks() == set()


def test_a_block_is_left_out_when_deeper_ones_hold_all_columns_of_all_its_files_together():
    other = (Column("2", ("b",), "int", "long"),)
    both = (*COLUMNS, *other)

    def block(name, paths, columns, computed="full"):
        one = indexed(name, dict.fromkeys(paths, True), computed)
        return BlockFiles(replace(one.block, columns=columns), one.files, one.ordinals, {})

    shallow = block("shallow", "xy", both, "footer")
    first, second = block("first", "xy", COLUMNS), block("second", "xy", other)
    assert Coverage([shallow, first, second], LIVE).find_redundant_blocks() == {"shallow"}
    assert Coverage([shallow, first], LIVE).find_redundant_blocks() == set()
    assert Coverage([shallow, first, block("second", "x", other)], LIVE).find_redundant_blocks() == set()
    assert Coverage([first, shallow], LIVE).adds_knowledge(second.block, second.files, both)
    assert not Coverage([first, second], LIVE).adds_knowledge(shallow.block, shallow.files, both)
