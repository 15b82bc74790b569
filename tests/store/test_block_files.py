"""Facts that blocks have of their data files, where columns of some have no rows."""

import numpy as np
import pyarrow as pa

from metastore.format.manifest import Block, SummaryRef
from metastore.format.object_schemas import FILES, SUMMARY
from metastore.store.block_files import read_block_files
from store.small_blocks import columns

LEAVES = columns(19)  # more than two bytes of bits


def sparse(store, present):
    """A block with rows where a matrix of data files and columns says so."""
    rows = [{"column": int(c), "file": int(f), "rows": 1} for c, f in np.argwhere(present.T)]
    ref = store.put("summary", pa.Table.from_pylist(rows, SUMMARY), [len(rows)])
    listed = [{"file": i, "path": f"f{i}", "size": 1} for i in range(len(present))]
    files = store.put("files", pa.Table.from_pylist(listed, FILES), [len(listed)])
    return Block(
        id="b", computed="full", columns=LEAVES, files=files, summary=(SummaryRef(ref, tuple(range(len(LEAVES)))),)
    )


def test_a_block_knows_the_columns_that_it_has_rows_of(store):
    present = np.random.default_rng(1).random((12, len(LEAVES))) < 0.7
    present[3] = present[7] = True
    [block_files] = read_block_files(store, [sparse(store, present)])
    for file, is_known in enumerate(present):
        assert block_files.known_columns(file) == {(LEAVES[i].key, LEAVES[i].type) for i in np.flatnonzero(is_known)}
    assert set(block_files.absent) == set(np.flatnonzero(~present.all(axis=1)).tolist())


def test_files_that_miss_the_same_columns_share_what_is_known_of_them(store):
    present = np.ones((6, len(LEAVES)), bool)
    present[::2, 5:9] = False
    [block_files] = read_block_files(store, [sparse(store, present)])
    assert len({id(block_files.known_columns(file)) for file in range(6)}) == 2
    assert len({id(absent) for absent in block_files.absent.values()}) == 1
