"""Sparklines; `tests/spark/test_data_source.py` compares them with the shim's."""

from __future__ import annotations

import math

import pytest

from metastore.format.sparkline import count_evenly, draw_sparkline

SHAPES = [
    ([0] * 51 + [1] * 50, "██"),
    ([1] * 5 + [2] * 5 + [3] * 10 + [4] * 30 + [5] * 51, "▂▂▂▅█"),
    (list(range(0, 1010, 10)), "██████████"),
    ([0.0] * 51 + [1.0] * 50, "█▁▁▁▁▁▁▁▁█"),
    ([i / 7 for i in range(100)] + [1e9], "██████████"),  # an outlier does not press all others into one bar
    ([7] * 101, "█"),
    ([0.5] * 101, "█"),
    ([-(1 << 63)] * 50 + [(1 << 63) - 1] * 51, "█▁▁▁▁▁▁▁▁█"),
    ([b"a"] * 101, None),
    ([-math.inf] * 50 + [math.inf] * 51, None),
    ([-math.inf] * 98 + [1.5, 2.5, 3.5], None),
    ([-1e308] * 50 + [1e308] * 51, None),
    ([1, 2], None),
    ([-math.inf] * 50 + [1.5, 2.5] + [math.inf] * 49, None),  # two are too few
]


@pytest.mark.parametrize(("percentiles", "expected"), [*SHAPES, (None, None)])
def test_shapes(percentiles, expected):
    assert draw_sparkline(percentiles) == expected


def test_no_value_is_lost():
    ends, sums = [0.0, 1.0, 1.0, 4.0, 10.0], [0, 5, 9, 9, 30]
    for bars in (1, 2, 3, 7, 100):
        assert sum(count_evenly(ends, sums, bars, integers=False)) == pytest.approx(30)
    assert count_evenly(ends, sums, 10, integers=True)[:4] == pytest.approx([9, 0, 0, 0])
