"""How far distributions have moved, against brute force over the values themselves."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import metastore
from metastore.reading.distribution_changes import compare_distributions
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

ROWS = 10_000
random = np.random.default_rng(11)
DAY = np.datetime64("2025-01-01")


def brute_psi(p, q):
    total = 0.0
    for old, new in zip(p, q, strict=True):
        a, b = max(old / sum(p), 1e-4), max(new / sum(q), 1e-4)
        total += (b - a) * math.log(b / a)
    return total


def brute_js(p, q):
    total = 0.0
    for old, new in zip(p, q, strict=True):
        a, b = old / sum(p), new / sum(q)
        middle = (a + b) / 2
        total += sum(share * math.log2(share / middle) for share in (a, b) if share) / 2
    return math.sqrt(total)


def deciles(before, after):
    before, after = np.sort(before), np.sort(after)
    edges = np.unique(before[[-(-k * len(before) // 10) - 1 for k in range(1, 10)]])
    return [np.diff([0, *np.searchsorted(side, edges, side="right"), len(side)]).tolist() for side in (before, after)]


def categories(before, after, most=20):
    old, new = Counter(before.tolist()), Counter(after.tolist())
    both = sorted((old + new).items(), key=lambda pair: (-pair[1], pair[0]))
    chosen = [value for value, _ in (both if len(both) <= most else both[: most - 1])]
    counts = [[side[value] for value in chosen] for side in (old, new)]
    remaining = [side.total() - sum(few) for side, few in zip((old, new), counts, strict=True)]
    return [[*few, remainder] for few, remainder in zip(counts, remaining, strict=True)] if any(remaining) else counts


def measure(folder, spark_type, before, after, kinds=("none", "none"), bins=1000):
    """Both measures and their reason, of two tables of one column."""
    sides = []
    for name, values, kind in zip(("before", "after"), (before, after), kinds, strict=True):
        (folder / name).mkdir()
        halves = np.array_split(values, 2) if isinstance(values, np.ndarray) else [values[:1], values[1:]]
        analyzed_tables.commit_table_level(
            folder / name, [Content(spark_type, [pa.array(half) for half in halves], [kind] * 2)], bins
        )
        sides.append(partial(metastore.open(str(folder / name)).details, at=None))
    psi, js = compare_distributions(["c0"], *sides)
    assert (psi["measure"], js["measure"], psi["reason"]) == ("psi", "js_distance", js["reason"])
    return psi["change"], js["change"], psi["reason"]


WORDS = np.array([f"w{i:03}" for i in range(300)])
RISING = np.arange(300) / 44850
LISTED, UNLISTED = ("complete", "complete"), ("none", "none")
CASES = {
    "bigint": ("bigint", random.integers(0, 10**6, ROWS), random.integers(10**5, 2 * 10**6, ROWS), UNLISTED, deciles),
    "moved": ("double", random.normal(0, 1, ROWS), random.normal(0.5, 1.5, ROWS), UNLISTED, deciles),
    "skewed": ("double", random.lognormal(0, 2, ROWS), random.lognormal(0.3, 2, ROWS), UNLISTED, deciles),
    "heavy": ("int", random.poisson(0.7, ROWS) ** 3, random.poisson(0.9, ROWS) ** 3, UNLISTED, deciles),
    "apart": ("bigint", random.integers(0, 1000, ROWS), random.integers(5000, 6000, ROWS), UNLISTED, deciles),
    "date": ("date", DAY + random.integers(0, 300, ROWS), DAY + random.integers(90, 400, ROWS), UNLISTED, deciles),
    "boolean": ("boolean", random.random(ROWS) < 0.2, random.random(ROWS) < 0.3, LISTED, categories),
    "few": ("int", random.poisson(2, ROWS), random.poisson(3, ROWS), LISTED, categories),
    "words": ("string", random.choice(WORDS, ROWS, p=RISING), random.choice(WORDS, ROWS), LISTED, categories),
    "a word gone": ("string", np.array(["a", "b"] * 500), np.array(["a"] * 900), LISTED, categories),
    "unlisted words": (
        *("string", random.choice(WORDS[:200], ROWS), random.choice(WORDS[50:], ROWS)),
        *(("none", "complete"), deciles),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_against_brute_force(case, tmp_path):
    spark_type, before, after, kinds, bins = CASES[case]
    psi, js, reason = measure(tmp_path, spark_type, before, after, kinds)
    counts = bins(before, after)
    exact = bins is categories
    assert reason is None
    assert psi == pytest.approx(brute_psi(*counts), **({"rel": 1e-9} if exact else {"rel": 0.03, "abs": 0.005}))
    assert js == pytest.approx(brute_js(*counts), **({"rel": 1e-9} if exact else {"rel": 0.03, "abs": 0.005}))
    assert psi > 0.01


@pytest.mark.parametrize("case", ["skewed", "heavy", "words"])
def test_the_same_data_have_not_moved(case, tmp_path):
    spark_type, before, _, kinds, _ = CASES[case]
    assert measure(tmp_path, spark_type, before, before, kinds) == (0, 0, None)


@pytest.mark.parametrize(
    ("spark_type", "arrow"), [("decimal(38,6)", pa.decimal128(38, 6)), ("decimal(7,2)", pa.decimal128(7, 2))]
)
def test_decimals(spark_type, arrow, tmp_path):
    before, after = random.integers(-500, 10_000, 5000), random.integers(0, 15_000, 5000)
    arrays = (pa.array(side).cast(pa.decimal128(38, 6)).cast(arrow) for side in (before, after))
    psi, _, _ = measure(tmp_path, spark_type, *arrays)
    assert psi == pytest.approx(brute_psi(*deciles(before, after)), rel=0.05)


def test_real_data(tmp_path):
    """Flower measurements of R. A. Fisher, 1936: sepal lengths of two species."""
    setosa = "51 49 47 46 50 54 46 50 44 49 54 48 48 43 58 57 54 51 57 51 54 51 46 51 48 50 50 52 52 47 48 54 52 55 49 50 55 49 44 51 50 45 44 50 51 48 51 46 53 50"  # noqa: E501 - a list
    versicolor = "70 64 69 55 65 57 63 49 66 52 50 59 60 61 56 67 56 58 62 56 59 61 63 61 64 66 68 67 60 57 55 55 58 60 54 60 67 63 56 55 55 61 58 50 56 57 57 62 51 57"  # noqa: E501 - a list
    before, after = (np.array([int(text) / 10 for text in side.split()]) for side in (setosa, versicolor))
    psi, js, _ = measure(tmp_path, "double", before, after, ("none", "none"))
    counts = deciles(before, after)
    assert (psi, js) == (pytest.approx(brute_psi(*counts)), pytest.approx(brute_js(*counts)))
    assert psi > 2


NULLS = pa.array([None, None], pa.int64())


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (NULLS, pa.array([1, 2]), "the column has no values before"),
        (pa.array([1, 2]), NULLS, "the column has no values after"),
    ],
)
def test_what_is_not_known_is_null_with_its_reason(before, after, reason, tmp_path):
    assert measure(tmp_path, "bigint", before, after) == (None, None, reason)


def test_nan_and_null_are_in_no_bin(tmp_path):
    before = pa.array([1.0, 2.0, 2.0, float("nan"), None])
    after = pa.array([float("nan"), 1.0, 2.0, None, 2.0, None, float("nan")])
    assert measure(tmp_path, "double", before, after, ("complete", "complete")) == (0, 0, None)
