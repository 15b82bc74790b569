"""Table level by partial merges: what is merged of what changed is what merging from scratch gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import metastore
from kernel.samples import column, reduce_column
from metastore.format.data_files import DataFile
from metastore.kernel.built_in_statistics import identify_merged_statistics
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.distinct_sketch import parse_sketches
from metastore.kernel.statistic_rows import summary_rows
from metastore.store import Store
from metastore.store.block_files import read_block_files
from metastore.table_level import column_groups, group_cache, group_tree, list_groups
from metastore.table_level.column_groups import AGGREGATE_KIND, ColumnGroups, ReductionInput
from metastore.table_level.group_cache import GroupCache
from metastore.table_level.group_tree import FAN_OUT, FileGroups, digest_of_facts, find_group_ends
from metastore.table_level.live_statistics import LiveStatistics
from metastore.table_level.table_details import TableLevelOptions
from table_level.changing import COLUMNS, NODES, ROWS, Table, nodes_of, rows_of

ACTIONS = ("append", "delete", "overwrite", "compact")
READ = ("sketches", "histograms", "frequencies")


@pytest.mark.slow
@pytest.mark.parametrize("options", [TableLevelOptions(), TableLevelOptions(bins=20, top=5)])
def test_whatever_comes_and_goes_is_as_from_scratch(tmp_path, options):
    table = Table(tmp_path, 7, cut=options.top == 5, options=options)
    table.commit(table.append(300))
    for step in range(8):
        action = ACTIONS[step % len(ACTIONS)]
        blocks = table.append(3 if action == "compact" else 20) if action != "delete" else []
        if action != "append":
            table.delete(80 if action == "compact" else int(table.random.integers(1, 30)))
        changed = table.commit(blocks)
        _, _, scratch = table.analyze(nodes=())
        assert rows_of(table, changed) == rows_of(table, scratch), step
        assert bool(changed.nodes) == (len(table.files) > FAN_OUT), step


@pytest.mark.usefixtures("same_groups")
def test_only_what_changed_is_read_and_merged(tmp_path, monkeypatch):
    table = Table(tmp_path, 3)
    table.commit(table.append(600))
    before, names = table.store.read().nodes, []
    raw = Store.read_bytes
    monkeypatch.setattr(
        Store, "read_bytes", lambda self, name, *arguments: names.append(name) or raw(self, name, *arguments)
    )
    level = table.commit(table.append(1))
    for kind in READ:  # of 13 tasks, those of one group's files
        assert 0 < sum(name.startswith(f"{kind}-") for name in names) < 12, kind
    for kind in NODES:
        new = [ref.rows for ref in nodes_of(level, kind) if ref not in before]
        assert 0 < sum(new) <= 2 * len(COLUMNS), kind


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 150])
@pytest.mark.parametrize("fan_out", [4, 64])
def test_lists_that_are_too_long_are_not_kept_and_not_tried_again(tmp_path, monkeypatch, most, fan_out):
    monkeypatch.setattr(group_tree, "FAN_OUT", fan_out)
    monkeypatch.setattr(list_groups, "MOST_GROUP_VALUES", most)
    table = Table(tmp_path, 21, cut=True)
    table.commit(table.append(300))
    for _ in range(2):
        table.delete(5)
        changed = table.commit(table.append(5))
        _, _, scratch = table.analyze(nodes=())
        assert rows_of(table, changed) == rows_of(table, scratch)
    numbers = [n for ref in nodes_of(changed, "table-list-nodes") for n in table.store.get(ref)["number"].to_pylist()]
    assert min(numbers) == list_groups.NOT_KEPT
    assert max(numbers) <= most
    assert not [ref for ref in nodes_of(table.analyze()[2], "table-list-nodes") if ref not in changed.nodes]


def test_columns_that_are_widened_renamed_dropped_and_added(tmp_path):
    table = Table(tmp_path, 23, cut=True)
    narrow, text, number = column("int", "n", "1"), *COLUMNS[1:]
    table.columns = (narrow, text)
    table.commit(table.append(150))
    for columns in ((COLUMNS[0], text), (replace(text, path=("other",)), narrow), (COLUMNS[0], number)):
        table.columns = columns
        changed = table.commit(table.append(3))
        _, _, scratch = table.analyze(nodes=())
        assert rows_of(table, changed) == rows_of(table, scratch)


def test_rows_that_contradict_themselves_are_made_again(tmp_path):
    table = Table(tmp_path, 24)
    level = table.commit(table.append(150))
    lists, bars = ("frequencies", "listed"), ("counts", "edges_long", "edges_double", "edges_binary")
    for kind, names in (("table-list-nodes", lists), ("table-histogram-nodes", bars)):
        (ref,) = nodes_of(level, kind)
        for name in names:
            stored = table.store.get(ref)
            position = stored.schema.get_field_index(name)
            wrong = pa.array([[1] if pa.types.is_integer(stored.schema.field(name).type.value_type) else []] * ref.rows)
            stored = stored.set_column(position, stored.schema.field(name), wrong.cast(stored.schema.field(name).type))
            false = table.store.put(kind, stored, [ref.rows])
            _, _, again = table.analyze(nodes=[node for node in level.nodes if node != ref] + [false])
            assert rows_of(table, again) == rows_of(table, level), name


def test_another_number_of_bins_takes_no_notice_of_what_is_kept(tmp_path):
    table = Table(tmp_path, 22)
    table.commit(table.append(100))
    table.options = TableLevelOptions(bins=30)
    changed = table.commit()
    _, _, scratch = table.analyze(nodes=())
    assert rows_of(table, changed) == rows_of(table, scratch)


@pytest.mark.parametrize("change", ["added", "changed"])
def test_a_statistic_that_groups_lack_is_not_missing_from_the_table(tmp_path, monkeypatch, change):
    table, now = Table(tmp_path, 25), identify_merged_statistics()
    before = now[:-2] if change == "added" else tuple((*state[:3], 0) for state in now)
    with monkeypatch.context() as old:
        old.setattr(column_groups, "identify_merged_statistics", lambda: before)
        level = table.commit(table.append(150))
    (ref,) = nodes_of(level)
    stored = table.store.get(ref)
    for name in ("min_len", "empty_texts"):
        position, field = stored.schema.get_field_index(name), stored.schema.field(name)
        stored = stored.set_column(position, field, pa.nulls(ref.rows, field.type))
    nodes = [node for node in level.nodes if node != ref] + [table.store.put("table-nodes", stored, [ref.rows])]
    _, _, again = table.analyze(nodes=nodes)
    _, _, scratch = table.analyze(nodes=())
    assert rows_of(table, again) == rows_of(table, scratch)
    text = table.store.get(again.snapshot.summary).to_pylist()[1]
    assert (text["min_len"], text["max_len"], text["empty_texts"]) == (4, 4, 0)


@pytest.mark.parametrize("kind", NODES)
def test_groups_that_lack_a_field_are_not_found(monkeypatch, kind):
    now = group_cache.group_cache_key(kind, 1, COLUMNS[0])
    monkeypatch.setitem(group_cache.SCHEMAS, kind, pa.schema(list(group_cache.SCHEMAS[kind])[:-1]))
    assert group_cache.group_cache_key(kind, 1, COLUMNS[0]) != now


def test_columns_of_a_file_in_several_blocks(tmp_path):
    table = Table(tmp_path, 12)
    table.commit(table.append(120))
    files = [DataFile(path=f"{file.path}-more", size=1 << 20, rows=ROWS, format="parquet") for file in table.files[::3]]
    table.files += files
    changed = table.commit([table.block(files, COLUMNS[:1]), table.block(files, COLUMNS[1:])])
    _, _, scratch = table.analyze(nodes=())
    assert rows_of(table, changed) == rows_of(table, scratch)


def test_many_nodes_are_written_in_several_objects_and_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(group_cache, "_FLUSH_BYTES", 12_000)
    monkeypatch.setattr(group_cache, "_GROUP_BYTES", 3_000)
    monkeypatch.setattr(group_cache, "_SMALL_BYTES", 1)
    table = Table(tmp_path, 13)
    level = table.commit(table.append(300))
    assert all(len(nodes_of(level, kind)) > 2 for kind in NODES)
    table.delete(40)
    changed = table.commit(table.append(20))
    _, _, scratch = table.analyze(nodes=())
    assert rows_of(table, changed) == rows_of(table, scratch)


def test_few_files_need_no_nodes(tmp_path):
    table = Table(tmp_path, 4)
    assert table.commit(table.append(FAN_OUT)).nodes == ()
    assert table.commit(table.append(1)).nodes


@pytest.mark.parametrize("kind", NODES)
def test_nodes_that_are_damaged_or_gone_are_made_again(tmp_path, kind):
    table = Table(tmp_path, 5)
    table.commit(table.append(200))
    (ref,) = nodes_of(table.store.read(), kind)
    path = tmp_path / "objects" / ref.name
    data = path.read_bytes()
    _, _, scratch = table.analyze(nodes=())
    for damaged in (data[: ref.length // 2], data[:9] + bytes(2000) + data[2009:], None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        _, _, again = table.analyze()
        assert rows_of(table, again) == rows_of(table, scratch)
        assert ref not in again.nodes


@pytest.mark.parametrize("kind", NODES)
def test_verification_reads_them_and_collection_keeps_them(tmp_path, kind):
    table = Table(tmp_path, 9)
    nodes = table.commit(table.append(100)).nodes
    (ref,) = [node for node in nodes if node.kind == kind]
    states = {row["object"]: row["state"] for row in metastore.verify(str(tmp_path))}
    assert set(states.values()) == {"ok"}
    metastore.compact(str(tmp_path))
    metastore.gc(str(tmp_path), delete=True)
    assert table.store.read().nodes == nodes
    path = tmp_path / "objects" / ref.name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    states = {row["object"]: row["state"] for row in metastore.verify(str(tmp_path))}
    assert states[ref.name] == "damaged"


@pytest.mark.slow
def test_objects_of_which_little_is_left_are_written_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(group_cache, "_MOST_SMALL", 3)
    table = Table(tmp_path, 6)
    table.commit(table.append(120))
    for _ in range(8):
        table.delete(20)
        level = table.commit(table.append(20))
        assert all(len(nodes_of(level, kind)) <= 4 for kind in NODES)
    _, _, scratch = table.analyze(nodes=())
    for kind in NODES:
        rows, least = (sum(ref.rows for ref in nodes_of(analyzed, kind)) for analyzed in (level, scratch))
        assert 0 < rows <= 2 * least


@pytest.mark.parametrize("count", [0, 1, 64, 65, 5000])
def test_groups_cover_all_in_order_and_change_little(count):
    random = np.random.default_rng(count)
    words = random.integers(0, 1 << 63, count, dtype=np.uint64)
    levels = find_group_ends(words)
    below = count
    for ends in levels:
        assert ends[-1] == below
        assert (np.diff(ends) > 0).all()
        below = len(ends)
    assert below <= FAN_OUT
    for ends in levels:
        sizes = np.diff(ends[:-1], prepend=0)  # the last group ends where all do
        assert (sizes[1:] > FAN_OUT // 2).all()
        assert not len(sizes) or (sizes**2).sum() < 1.5 * FAN_OUT * sizes.sum()
    if levels:
        more = find_group_ends(np.insert(words, 17, np.uint64(12345)))
        assert len(set(levels[0].tolist()) ^ {end - (end > 17) for end in more[0].tolist()}) <= 2


def test_percentiles_stay_near_in_rank(tmp_path):
    of, random, values, statistics = COLUMNS[0], np.random.default_rng(3), [], []
    for i in range(5 * FAN_OUT):
        numbers = np.sort((random.pareto(1.5, 500) * 1000 + i).astype(np.int64))
        kernel = ColumnKernel(of)
        kernel.add(pa.array(numbers))
        statistics.append(kernel.finish(500))
        values.append(numbers)
    rows = summary_rows((0, i, file_statistics) for i, file_statistics in enumerate(statistics))
    thetas = [file_statistics.theta for file_statistics in statistics]
    words = np.stack([np.frombuffer(digest_of_facts(i), np.uint64) for i in range(len(statistics))])
    none = GroupCache(Store.open(str(tmp_path), writable=True), AGGREGATE_KIND, ())
    merged = ColumnGroups(of, FileGroups(words), none).reduce(ReductionInput(rows, rows, parse_sketches(thetas)))
    ordered = np.sort(np.concatenate(values))
    for percent, value in enumerate(merged.percentiles):
        low, high = np.searchsorted(ordered, [value, value + 1]) / len(ordered) * 100
        assert low - 1 <= percent <= high + 1, (percent, low, high)
    at_once = reduce_column(of, rows, thetas)
    for name in ("rows", "nulls", "lo", "hi", "sum_exact", "max_len", "theta", "distinct"):
        assert getattr(merged, name) == getattr(at_once, name), name
    for name in ("sum", "mean", "m2", "avg_len"):
        assert getattr(merged, name) == pytest.approx(getattr(at_once, name)), name


def test_files_that_were_analyzed_again_are_merged_again(tmp_path):
    table = Table(tmp_path, 8)
    table.commit(table.append(100))
    facts, coverage, _ = table.analyze()

    def merge(blocks, nodes):
        cache = GroupCache(table.store, AGGREGATE_KIND, nodes)
        assert list(LiveStatistics(table.store, blocks, facts.files, cache).read_columns(COLUMNS))
        return cache.finish()

    first = merge(coverage.blocks, ())
    assert first
    assert merge(coverage.blocks, first) == first
    blocks = [*(indexed.block for indexed in coverage.blocks), table.block(table.files[:50])]
    assert merge(read_block_files(table.store, blocks), first) != first
