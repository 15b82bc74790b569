"""The plan of ANALYZE for a manifest, and its commit, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.samples import column
from metastore.pipeline.commit import commit_plan
from metastore.pipeline.missing_statistics import MissingStatistics
from metastore.pipeline.plan import RoundState, make_plan
from metastore.pipeline.repair_plan import list_refusals
from metastore.spark_jobs.progress import NoProgress
from metastore.store import block_merge
from metastore.store.block_merge import merge_blocks
from metastore.store.verification import verify_manifest
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
    assert plan.reason == "objects of the table level are missing"


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


def damage_details(lake, block, kind):
    """Flip a byte of the detail objects of a kind that a block names."""
    for name in set(lake.store.get(block.files)[f"{kind}_name"].to_pylist()):
        path = lake.folder / "objects" / name
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)


def repair(lake):
    """Plan a repair, analyze again what it asks for, and commit it; returns the manifest and the refusals."""
    inputs = lake.inputs(is_repair=True)
    plan = make_plan(inputs, RoundState.of(inputs), lake.store.read())
    lake.settings = inputs.block_settings
    computed = [lake.block(part.files, part.columns) for part in plan.work]
    state = commit_plan(inputs, plan, plan.state, computed, NoProgress())
    return lake.store.read(), list_refusals(state.damage)


@pytest.mark.parametrize("kind", ["sketches", "frequencies", "histograms"])
def test_a_repair_reads_live_files_again_and_names_what_else_is_lost(lake, kind):
    block = lake.analyzed(3)
    gone = lake.files.pop(0)
    damage_details(lake, block, kind)
    manifest, refused = repair(lake)
    [new] = manifest.blocks
    assert lake.store.get(new.files)["path"].to_pylist() == [file.path for file in lake.files]
    [refusal] = refused
    assert refusal.subject == "earlier snapshots"
    assert (
        refusal.reason == f"1 data file, such as {gone.path}: the statistics of n, t, d were damaged and are left out"
    )
    assert not [finding for finding in verify_manifest(lake.store, manifest) if finding.is_wrong]
    assert repair(lake)[1] == ()


def test_a_repair_of_which_nothing_is_lost_refuses_nothing(lake):
    block = lake.analyzed(3)
    damage_details(lake, block, "frequencies")
    manifest, refused = repair(lake)
    assert (len(manifest.blocks), refused) == (1, ())
    assert manifest.blocks[0].id != block.id


def test_a_repair_gives_a_block_new_zones(lake, monkeypatch):
    first, second = lake.analyzed(2), lake.analyzed(2)
    manifest = merge_blocks(lake.store.read(), lake.store, at_most=1, zoned=1)
    lake.store.commit(manifest.table, lambda old: replace(old, blocks=manifest.blocks))
    [merged] = lake.store.read().blocks
    assert merged.id not in {first.id, second.id}
    (lake.folder / "objects" / merged.zones[0].object.name).unlink()
    monkeypatch.setattr(block_merge.rewrite_block, "__kwdefaults__", {"zoned": 1})
    manifest, refused = repair(lake)
    assert (len(manifest.blocks), len(manifest.blocks[0].zones), refused) == (1, len(merged.zones), ())
    assert not [finding for finding in verify_manifest(lake.store, manifest) if finding.is_wrong]
