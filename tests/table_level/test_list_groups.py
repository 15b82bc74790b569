"""Lists of groups of files where jobs reduce the table's: they read these and the files of no such group."""

from __future__ import annotations

import pytest

from metastore.spark_jobs.task_store import TaskStore
from metastore.store.data_file_access import LOCAL_FILES
from metastore.table_level import group_tree, list_groups, value_jobs
from metastore.table_level.column_groups import AGGREGATE_KIND
from metastore.table_level.detail_selection import DetailSlice
from metastore.table_level.group_cache import GroupCache
from metastore.table_level.group_tree import GroupTree
from metastore.table_level.list_groups import GroupListSource
from metastore.table_level.live_statistics import LiveStatistics
from metastore.table_level.table_details import TableLevelOptions
from metastore.table_level.value_jobs import ValueJobs
from table_level.changing import COLUMNS, Table, nodes_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VALUES = ("value_long", "value_double", "value_binary")
AUTO = TableLevelOptions(threshold=50)
FORCED = TableLevelOptions(algorithm="duplicates")
APART = TableLevelOptions(driver_bytes=70_000)


@pytest.fixture
def make_table(spark, tmp_path, same_groups):
    """Makes tables that come with Spark."""

    def make(options, **more):
        files = ValueJobs(context=spark.sparkContext, store=TaskStore(str(tmp_path)), files={}, access=LOCAL_FILES)
        return Table(tmp_path, 31, options=options, jobs=files, **more)

    return make


def files_of(pieces):
    """How many lists of files are taken."""
    return sum(int((piece.numbers >= 0).sum()) for piece in pieces if isinstance(piece, DetailSlice))


def groups_of(pieces):
    """How many lists of groups are taken."""
    return sum(len(piece.ordinals) for piece in pieces if isinstance(piece, GroupListSource))


def lists(table, level):
    """The values of each column, and what the summary says."""
    snapshot, frequencies = level.snapshot, {}
    for ref in snapshot.frequencies:
        for row in table.store.get(ref.object).to_pylist():
            value = next(row[name] for name in VALUES if row[name] is not None)
            frequencies[row["column"], str(value)] = row["frequency"], row["error"]
    return frequencies, repr(table.store.get(snapshot.summary).to_pylist())


@pytest.mark.parametrize("options", [AUTO, FORCED])
def test_a_job_reads_groups(make_table, monkeypatch, options):
    taken, run = [], value_jobs.count_jobs.run_count_job
    monkeypatch.setattr(
        value_jobs.count_jobs, "run_count_job", lambda *arguments: taken.append(arguments[2]) or run(*arguments)
    )
    table = make_table(options)
    table.commit(table.append(600))
    table.delete(1)
    changed = table.commit(table.append(1))
    _, _, scratch = table.analyze(nodes=())
    assert lists(table, changed) == lists(table, scratch)
    assert [groups_of(pieces) > 0 for pieces in taken] == [False, True, False]
    assert files_of(taken[0]) == 600 * len(COLUMNS)
    assert 0 < files_of(taken[1]) < files_of(taken[0])  # how large groups are is chance


@pytest.mark.parametrize("cut", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_tasks_that_reduce_whole_columns_read_groups(make_table, monkeypatch, cut):
    taken, run = [], value_jobs.count_jobs.run_reduce_job
    monkeypatch.setattr(
        value_jobs.count_jobs, "run_reduce_job", lambda *arguments: taken.append(arguments[2]) or run(*arguments)
    )
    table = make_table(APART, cut=cut)
    table.commit(table.append(600))
    for _ in range(3):
        table.commit()
    files = [files_of(pieces) for pieces in taken]
    assert files[0] > files[1] >= files[2] >= files[3]  # groups are made little by little
    level = table.commit(table.append(1))
    _, _, scratch = table.analyze(nodes=())
    assert lists(table, level) == lists(table, scratch)
    assert [groups_of(pieces) > 0 for pieces in taken] == [False, True, True, True, True, False]


@pytest.mark.parametrize("most", [pytest.param(0, marks=pytest.mark.campaign), 150])
def test_groups_of_groups_and_lists_that_are_too_long(make_table, monkeypatch, most):
    monkeypatch.setattr(group_tree, "FAN_OUT", 4)
    monkeypatch.setattr(list_groups, "MOST_GROUP_VALUES", most)
    table = make_table(AUTO)
    level = table.commit(table.append(60))
    for _ in range(3):
        table.delete(2)
        level = table.commit(table.append(2))
        _, coverage, scratch = table.analyze(nodes=())
        assert lists(table, level) == lists(table, scratch)
    if most:  # it is known of every group whether its list is too long, also where that of a part is
        none = GroupCache(table.store, AGGREGATE_KIND, ())
        live_columns = LiveStatistics(table.store, coverage.blocks, table.files, none).read_columns(COLUMNS)
        trees = [
            GroupTree(live_column.groups.groups, live_column.order, list_groups.list_cache_key(live_column.column), ())
            for live_column in live_columns
        ]
        stored = [
            n for ref in nodes_of(level, list_groups.LIST_GROUP_KIND) for n in table.store.get(ref)["node"].to_pylist()
        ]
        assert set().union(*(tree.keys() for tree in trees)) <= set(stored)


def test_groups_that_are_damaged_are_made_again(make_table, tmp_path):
    table = make_table(AUTO)
    level = table.commit(table.append(200))
    (ref,) = nodes_of(level, "table-list-nodes")
    path = tmp_path / "objects" / ref.name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    changed = table.commit(table.append(1))
    _, _, scratch = table.analyze(nodes=())
    assert lists(table, changed) == lists(table, scratch)
    assert ref not in changed.nodes
