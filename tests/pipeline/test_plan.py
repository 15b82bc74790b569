"""What ANALYZE decides to do about a manifest, and what it commits, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.samples import column
from metastore.pipeline.commit import commit_plan
from metastore.pipeline.plan import MissingStatistics, RoundState, make_plan
from metastore.spark_jobs.progress import NoProgress
from pipeline.lake import Lake
from table_level.changing import COLUMNS


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path)


def work(files, columns=COLUMNS, depth="full", *, is_listed=False):
    return MissingStatistics(depth, columns, tuple(files), is_listed)


def test_all_is_missing_of_a_table_that_was_never_analyzed(lake):
    lake.append(3)
    plan = lake.plan()
    assert (plan.manifest.blocks, plan.base, plan.work) == ((), (), (work(lake.files),))
    assert plan.reason is not None
    assert lake.plan(depth="files").work == (work(lake.files, (), "files"),)


def test_nothing_is_to_be_done_where_nothing_changed(lake):
    block = lake.analyzed()
    plan = lake.plan()
    assert (plan.base, plan.work, plan.reason) == ((block,), (), None)


def test_only_new_files_are_read(lake):
    lake.analyzed()
    lake.append(2)
    lake.snapshot = "2"
    assert lake.plan().work == (work(lake.files[3:]),)
    assert lake.plan(depth="files").work == (work(lake.files[3:], (), "files"),)


def test_a_new_column_and_a_new_type_are_read_of_every_file(lake):
    lake.analyzed()
    more = (replace(COLUMNS[0], type="decimal(20,0)"), *COLUMNS[1:], column("int", "more", "9"))
    lake.columns = more
    assert lake.plan().work == (work(lake.files, (more[0], more[3]), is_listed=True),)


def test_a_rollback_is_committed_though_nothing_is_missing(lake):
    lake.analyzed()
    lake.snapshot = "0"
    plan = lake.plan()
    assert plan.work == ()
    assert plan.reason == "another snapshot"


def test_blocks_of_a_killed_analyze_are_adopted(lake):
    lake.analyzed()
    settings = lake.inputs().block_settings
    lake.append(2)
    lake.settings = settings
    block = lake.block(lake.files[3:])
    plan = lake.plan()
    assert (plan.adopted, plan.work) == ((block,), ())
    assert plan.reason is not None
    assert lake.plan(is_repair=True).adopted == ()


def test_a_damaged_block_is_computed_again(lake):
    block = lake.analyzed()
    state = RoundState.of(lake.inputs()).with_damage([block.id])
    plan = lake.plan(state)
    assert (plan.base, plan.work) == ((), (work(lake.files),))
    assert plan.reason is not None
    shallow = lake.plan(state, depth="footer")
    assert shallow.state.damage.skipped == {block.id}
    assert shallow.work == (work(lake.files, depth="footer"),)


def test_what_a_damaged_block_held_is_read_once(lake):
    block = lake.analyzed()
    lake.append(1)
    inputs = lake.inputs(columns=COLUMNS[:1])
    plan = make_plan(inputs, RoundState.of(inputs).with_damage([block.id]), lake.store.read())
    assert plan.work == (
        work(lake.files, COLUMNS[:1]),
        work(lake.files[:3], COLUMNS[1:], is_listed=True),
    )


def test_blocks_without_their_objects_are_computed_again(lake):
    block = lake.analyzed()
    (lake.folder / "objects" / block.summary[0].object.name).unlink()
    plan = lake.plan()
    assert plan.state.damage.blocks == {block.id}
    assert plan.work == (work(lake.files),)


def test_a_table_level_without_its_objects_is_written_again(lake):
    lake.analyzed()
    (lake.folder / "objects" / lake.store.read().snapshots[-1].summary.name).unlink()
    plan = lake.plan()
    assert plan.work == ()
    assert plan.reason == "objects of the table level are not there"


def test_statistics_of_another_table_are_none(lake):
    lake.analyzed()
    inputs = lake.inputs()
    inputs = replace(inputs, facts=replace(inputs.facts, uuid="7d2a3a3e-0000-4000-8000-000000000002"))
    plan = make_plan(inputs, RoundState.of(inputs), lake.store.read())
    assert (plan.manifest.blocks, plan.work) == ((), (work(lake.files),))


def test_planning_writes_nothing(lake):
    block = lake.analyzed()
    lake.append(2)
    before = lake.objects()
    for state in (None, RoundState.of(lake.inputs()).with_damage([block.id])):
        for is_repair in (False, True):
            lake.plan(state, is_repair=is_repair)
    assert lake.objects() == before


def test_a_commit_of_another_writer_makes_the_state_stale(lake):
    lake.analyzed()
    inputs = lake.inputs()
    plan = make_plan(inputs, RoundState.of(inputs), lake.store.read())
    assert not commit_plan(inputs, plan, plan.state, (), NoProgress()).is_stale
    lake.analyzed(2)
    after = commit_plan(inputs, plan, plan.state, (), NoProgress())
    assert after.is_stale
    assert after.is_committed
    again = make_plan(lake.inputs(), after, lake.store.read())
    assert (len(again.base), again.work) == (2, ())
    assert again.reason is not None
