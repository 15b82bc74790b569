"""Frequencies, histograms and quantiles of a column, read from the store alone."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import metastore
from metastore.errors import ColumnNotFound, DamagedObject, InvalidArgument, NoStatistics
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

WORDS = ["ash", "oak", "elm", "fir", "yew", "may", "box", "bay", "fig", "nut", "sal", "tea", None]


@pytest.fixture
def opened(tmp_path):
    random = np.random.default_rng(7)
    numbers = [pa.array(random.integers(0, 40, 1000) ** 2) for _ in range(3)]
    words = [pa.array([WORDS[i] for i in np.minimum(random.geometric(0.2, 1000) - 1, 12)]) for _ in range(3)]
    lists = [pa.array([None] * 1000, pa.float64())] * 3
    contents = [
        Content("bigint", numbers, ["complete"] * 3),
        Content("string", words, ["complete", 2, "complete"]),
        Content("double", lists, ["complete"] * 3),
        Content("int", [pa.array([1] * 1000, pa.int32())] * 3, ["none"] * 3),
    ]
    analyzed_tables.commit_table_level(tmp_path, contents, bins=20)
    return metastore.open(str(tmp_path)), numbers, words


@pytest.fixture
def files(tmp_path):
    return [str(tmp_path / "data" / f"f{i}.parquet") for i in range(3)]


@pytest.mark.parametrize("top", [1, 10, 11, 25, 1000, None])
def test_frequencies_of_the_table(opened, top):
    statistics, numbers, _ = opened
    counts = Counter(pa.concat_arrays(numbers).to_pylist())
    expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    answer = statistics.frequencies("c0", top=top)
    assert [(row["value"], row["frequency"]) for row in answer] == [(str(v), n) for v, n in expected]
    assert all(row["exact"] and row["error"] == 0 for row in answer)
    assert answer[0]["fraction"] == expected[0][1] / 3000
    assert answer.columns == ("value", "frequency", "fraction", "exact", "error")


def test_frequencies_of_cut_lists_tell_their_error(opened):
    statistics, _, words = opened
    counts = Counter(pa.concat_arrays(words).drop_null().to_pylist())
    for row in statistics.frequencies("c1"):
        assert row["frequency"] <= counts[row["value"]] <= row["frequency"] + row["error"]
        assert row["exact"] == (row["error"] == 0)
    assert not statistics.frequencies("c1")[5]["exact"]


def test_frequencies_of_one_file(opened, files):
    statistics, numbers, words = opened
    answer = statistics.frequencies("c0", top=None, file=files[1])
    assert {int(row["value"]): row["frequency"] for row in answer} == Counter(numbers[1].to_pylist())
    assert {r["value"]: r["frequency"] for r in statistics.frequencies("c1", file=files[1])} == dict(
        sorted(Counter(words[1].drop_null().to_pylist()).items(), key=lambda item: -item[1])[:2]
    )


def test_a_column_of_nulls_has_no_values(opened):
    assert len(opened[0].frequencies("c2")) == len(opened[0].histogram("c2")) == 0
    answer = opened[0].quantiles("c2", [0, 0.5])
    assert [(row["probability"], row["value"]) for row in answer] == [(0, None), (0.5, None)]


@pytest.mark.parametrize("bins", [None, 1, 3, 20, 500])
@pytest.mark.parametrize("file", [None, 2])
def test_histogram(opened, files, bins, file):
    statistics, numbers, _ = opened
    values = np.sort(np.concatenate(numbers if file is None else numbers[2:]))
    bars = statistics.histogram("c0", bins=bins, file=None if file is None else files[file])
    assert len(bars) == min(bins or 20, 20)
    assert sum(row["count"] for row in bars) == len(values)
    assert [row["bin"] for row in bars] == list(range(len(bars)))
    assert (bars[0]["lo"], bars[-1]["hi"]) == (str(values[0]), str(values[-1]))
    assert all(bar["hi"] == other["lo"] for bar, other in itertools.pairwise(bars))


def test_histogram_of_strings(opened):
    statistics, _, words = opened
    counts = Counter(pa.concat_arrays(words).drop_null().to_pylist())
    assert {row["hi"]: row["count"] for row in statistics.histogram("c1")} == counts


def test_quantiles(opened):
    statistics, numbers, _ = opened
    values = np.sort(np.concatenate(numbers))
    for row in statistics.quantiles("c0", [0, 0.1, 0.5, 0.99, 1]):
        rank = max(np.ceil(row["probability"] * 3000), 1)
        first, last = (np.searchsorted(values, int(row["value"]), side) for side in ("left", "right"))
        assert max(first + 1 - rank, rank - last, 0) <= 3000 * row["error"] <= 2 * 3000 / 20
        assert row["exact"] == (row["error"] == 0)
        assert row["exact"] or row["probability"] not in (0, 1)
    assert [row["value"] for row in statistics.quantiles("c0", [0, 1])] == [str(values[0]), str(values[-1])]


def test_a_summary_knows_how_exact_its_quartiles_are(opened, files):
    statistics = opened[0]
    rank_errors = statistics.summary().rank_errors
    assert sorted(rank_errors) == ["c0", "c1", "c3"]
    for name, error in rank_errors.items():
        assert error == max(row["error"] for row in statistics.quantiles(name, [0.25, 0.5, 0.75]))
    assert rank_errors["c0"] > rank_errors["c3"] == 0
    assert "~" in repr(statistics.summary())
    assert statistics.summary(file=files[0]).rank_errors == {}


def test_how_exact_quartiles_are_may_be_unreadable(opened, tmp_path):
    summary = opened[0].summary()
    for file in tmp_path.rglob("table-histograms*"):
        file.write_bytes(b"damaged")
    assert summary.rank_errors == {}


@pytest.mark.parametrize("verb", ["frequencies", "histogram", "quantiles"])
def test_mistakes(opened, verb):
    ask = getattr(opened[0], verb)
    with pytest.raises(ColumnNotFound):
        ask("c")
    with pytest.raises(InvalidArgument):
        ask("c0", at="7")


def test_what_was_not_kept(opened):
    with pytest.raises(NoStatistics, match="c3") as caught:
        opened[0].frequencies("c3")
    assert "FOR COLUMNS c3" in caught.value.hint


@pytest.mark.parametrize("wrong", [{"top": 0}, {"top": 2.5}, {"file": "nope"}])
def test_wrong_arguments(opened, wrong):
    with pytest.raises(InvalidArgument):
        opened[0].frequencies("c0", **wrong)


def test_one_probability_needs_no_list(opened):
    assert list(opened[0].quantiles("c0", 0.5)) == list(opened[0].quantiles("c0", [0.5]))


@pytest.mark.parametrize("wrong", [1.5, float("nan"), "0.5", [0.5, None], []])
def test_what_is_no_probability(opened, wrong):
    with pytest.raises(InvalidArgument, match="probabilities"):
        opened[0].quantiles("c0", wrong)


def test_damage_is_found_in_what_is_read(opened, tmp_path):
    (path,) = (tmp_path / "objects").glob("table-frequencies-*")
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedObject):
        opened[0].frequencies("c0")
