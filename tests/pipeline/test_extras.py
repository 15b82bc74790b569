"""The columns that get exact ranks and value indexes, and which stored ones still serve, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.errors import PySparkException

from kernel.samples import column
from metastore.errors import ColumnNotFound
from metastore.format.manifest import RanksRef
from metastore.pipeline.extras import RanksExtra, ValueIndexExtra
from metastore.pipeline.request import NOT_ORDERED, PARTITION_REFUSAL, AnalyzeStatement, resolve_request
from metastore.store.data_file_access import LOCAL_FILES
from metastore.table_level.value_jobs import ValueJobs
from pipeline.lake import Lake

KEYS = ("spark.metastore.ranks.columns", "spark.metastore.distribution.columns")


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path)


def resolved(lake, *, configured=(), properties=None, **request):
    statement = AnalyzeStatement(table="db.t", **{"columns": None, "partition": {}, "depth": "full", **request})
    facts = replace(lake.inputs().facts, properties=properties or {})
    return resolve_request(facts, statement, dict.fromkeys(KEYS, configured), case_sensitive=False, zone="UTC")


def test_arguments_settings_and_properties_choose_columns(lake):
    assert resolved(lake).ranks.ordinals == frozenset()
    assert resolved(lake, ranks=True).ranks.ordinals == {0, 1, 2}
    chosen = resolved(lake, ranks=("N",), configured=("t",), properties={"metastore.ranks.columns": "d, "})
    assert chosen.ranks.ordinals == {0, 1, 2}
    assert resolved(lake, distribution=("t",)).distribution.ordinals == {1}
    assert resolved(lake, configured=("t",), columns=("n",)).ranks.ordinals == frozenset()
    assert resolved(lake, ranks=True, depth="footer").ranks.ordinals == frozenset()


def test_unknown_columns_are_mistakes_of_arguments_and_told_of_settings(lake):
    with pytest.raises(ColumnNotFound):
        resolved(lake, ranks=("x",))
    extras = resolved(lake, configured=("x", "n"))
    assert extras.ranks.ordinals == {0}
    assert list(extras.ranks.failed) == ["ranks of x"]
    assert list(extras.distribution.failed) == ["distribution of x"]


def test_columns_without_an_order_have_no_ranks(lake):
    lake.columns = (*lake.columns, replace(column("string", "u", "4"), collation="UTF8_LCASE"))
    extras = resolved(lake, ranks=True, distribution=True)
    assert extras.ranks.ordinals == {0, 1, 2}
    assert extras.ranks.failed == {"ranks of u": NOT_ORDERED}
    assert extras.distribution.ordinals == {0, 1, 2, 3}


def test_a_partition_has_none(lake):
    lake.append(2)
    lake.files = [replace(file, partition={"p": str(number)}) for number, file in enumerate(lake.files)]
    extras = resolved(lake, ranks=("n",), partition={"p": "1"})
    assert extras.ranks.ordinals == frozenset()
    assert extras.ranks.failed == {"ranks of n": PARTITION_REFUSAL}


class Sort:
    """Writes down what it is to sort."""

    def __init__(self, *failures):
        self.asked, self.failures = [], list(failures)

    def sort_columns(self, ordinals, files, earlier):
        self.asked.append((list(ordinals), len(files), len(earlier)))
        if self.failures:
            raise self.failures.pop()
        return (RanksRef(None, tuple(ordinals), ()),)


def stored(lake, *ordinals):
    """The manifest as if its newest snapshot had ranks of columns."""
    manifest = lake.store.read()
    entry = manifest.snapshots[-1]
    return replace(manifest, snapshots=(replace(entry, ranks=(RanksRef(entry.summary, ordinals, ()),)),))


def finished(lake, sort, ordinals, manifest):
    stored = () if manifest is None else manifest.snapshots
    extra = RanksExtra(lake.inputs().facts, lake.store, frozenset(ordinals), {}, sort).finish(None, stored)
    return extra, {ordinal for ref in extra.new_ranks for ordinal in ref.columns}


def test_ranks_are_made_of_what_is_not_stored(lake):
    lake.analyzed(3)
    for manifest, expected in ((None, ([0, 1], 3, 0)), (stored(lake, 0), ([1], 3, 0))):
        sort = Sort()
        assert finished(lake, sort, (0, 1), manifest)[1] == {0, 1}
        assert sort.asked == [expected]


def test_ranks_of_added_files_are_merged_with_the_stored_ones(lake):
    lake.analyzed(3)
    manifest = stored(lake, 0, 2)
    lake.append(2)
    sort = Sort()
    assert finished(lake, sort, (0, 1), manifest)[1] == {0, 1}
    assert sort.asked == [([0], 2, 1), ([1], 5, 0)]
    sort = Sort(PySparkException("damaged"))
    extra, made = finished(lake, sort, (0,), manifest)
    assert sort.asked == [([0], 2, 1), ([0], 5, 0)]
    assert (made, extra.failed) == ({0}, {})


def test_ranks_of_files_that_are_gone_do_not_serve(lake):
    lake.analyzed(3)
    manifest = stored(lake, 0)
    lake.delete(1)
    sort = Sort()
    finished(lake, sort, (0,), manifest)
    assert sort.asked == [([0], 2, 0)]


def test_ranks_are_made_once_and_failures_are_told(lake):
    lake.analyzed(3)
    sort = Sort(PySparkException("no room"))
    extra, made = finished(lake, sort, (0,), None)
    assert made == set()
    assert list(extra.failed) == ["ranks of n"]
    assert extra.finish(None, ()) is extra
    assert len(sort.asked) == 1


def test_what_a_damaged_entry_has_is_wanted_too(lake):
    lake.analyzed(3)
    entry = replace(stored(lake, 1).snapshots[-1], distribution=(2,))
    facts = lake.inputs().facts
    ranks = RanksExtra(facts, lake.store, frozenset(), {}, Sort())
    index = ValueIndexExtra(facts, lake.store, frozenset({0}), {})
    assert ranks.with_columns_of(entry).ordinals == {1}
    assert index.with_columns_of(entry).ordinals == {0, 2}
    assert (ranks.is_current(entry), index.is_current(entry)) == (True, False)


def test_value_indexes_go_on_from_those_of_earlier_snapshots(lake):
    lake.analyzed(3)
    manifest = lake.store.read()
    entry = replace(manifest.snapshots[-1], distribution=(1,), ranks=())
    manifest = replace(manifest, snapshots=(entry,))
    jobs = ValueJobs(context=None, store=None, files={}, access=LOCAL_FILES)
    extra = ValueIndexExtra(lake.inputs().facts, lake.store, frozenset({0}), {})
    extended = extra.extend_jobs(jobs, manifest.snapshots)
    assert extended.distribution == {0, 1}  # what this snapshot has stays
    assert [earlier_part.files.tolist() for earlier_part in extended.earlier] == [[0, 1, 2]] * len(extended.earlier)
    assert ValueIndexExtra(extra.facts, lake.store, frozenset(), {}).extend_jobs(jobs, ()) is jobs
    assert list(extra.finish(entry, manifest.snapshots).failed) == ["distribution of n"]
