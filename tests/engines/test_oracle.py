"""No file with a row that matches is ever left out, whatever the filter and however poor the statistics."""

from __future__ import annotations

import random

import pytest

import metastore
from engines.random_tables import make_filter, matching_files, write_table

LEAST_SHARE = 0.6
"""Of the files without a row that matches so many are skipped, at least."""


def prune_random_filters(tmp_path, seed: int, files: int = 10, filters: int = 40) -> tuple[int, int, list[str]]:
    """Count the files without a row of a filter and those skipped, and name the files lost."""
    rng = random.Random(seed)
    tables = write_table(rng, tmp_path / str(seed), files)
    filters_to_ask = [make_filter(rng) for _ in range(filters)]
    statistics = metastore.open(tmp_path / str(seed))
    without, skipped, lost = 0, 0, []
    for filter_, matching in zip(filters_to_ask, matching_files(tables, filters_to_ask), strict=True):
        pruned = statistics.prune(filter_.spark)
        assert pruned.total == len(tables)
        lost += [f"seed {seed}: {filter_.spark} lost {pruned.why(path)}" for path in matching - set(pruned)]
        without += len(tables) - len(matching)
        skipped += len(tables) - len(pruned)
    return without, skipped, lost


@pytest.mark.parametrize("seed", range(4))
def test_no_file_that_matches_is_lost(tmp_path, seed):
    assert prune_random_filters(tmp_path, seed)[2] == []


def test_most_files_without_a_match_are_skipped(tmp_path):
    without, skipped, _ = prune_random_filters(tmp_path, 1000, files=30, filters=80)
    assert skipped / without > LEAST_SHARE, f"{skipped} of {without}"


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10_000, 10_300))
def test_many_tables(tmp_path, seed):
    assert prune_random_filters(tmp_path, seed, files=16, filters=80)[2] == []
