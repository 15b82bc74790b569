"""Theta sketches and their hash against Apache DataSketches itself."""

import datasketches as ds
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.format.hashing import pad_buffer
from metastore.format.murmur import murmur_bytes, murmur_words
from metastore.kernel.theta_sketch import ALL, EMPTY, NOMINAL, ThetaSketch, make_theta, union_thetas

LONGS = st.integers(-(2**63), 2**63 - 1)


def official(values):
    """The hashes that DataSketches makes, one sketch a value because a sketch sorts and drops."""
    hashes = []
    for value in values:
        sketch = ds.update_theta_sketch(12)
        sketch.update(value)
        hashes.extend(sketch)
    return hashes


def words(values, kind):
    return np.array(values, dtype=kind).view(np.uint64)


def buffer(values):
    data = pad_buffer(np.frombuffer(b"".join(values), dtype=np.uint8))
    lengths = np.array([len(value) for value in values], dtype=np.int64)
    return data, np.cumsum(lengths) - lengths, lengths


@given(st.lists(LONGS, min_size=1, max_size=50))
def test_longs_hash_as_datasketches_hashes_them(values):
    assert murmur_words(words(values, np.int64), 8).tolist() == official(values)


@given(st.lists(st.floats(allow_nan=False).map(lambda x: x + 0.0), min_size=1, max_size=50))
def test_doubles_hash_as_datasketches_hashes_them(values):
    assert murmur_words(words(values, np.float64), 8).tolist() == official(values)


@given(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=40))
def test_strings_hash_as_datasketches_hashes_them(values):
    assert murmur_bytes(*buffer([value.encode() for value in values])).tolist() == official(values)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 1023, 1024, 1025, 5000])
def test_strings_of_lengths_at_the_edges_of_blocks(length):
    values = [("é" * length).encode()[:length].decode("utf-8", "ignore").ljust(length, "x") for _ in range(3)]
    assert murmur_bytes(*buffer([v.encode() for v in values])).tolist() == official(values)


def test_short_values_hash_the_same_as_words_and_as_bytes():
    values = [bytes(range(1, n + 1)) for n in range(1, 9)]
    as_words = np.array([int.from_bytes(value, "little") for value in values], dtype=np.uint64)
    lengths = np.array([len(value) for value in values])
    assert np.array_equal(murmur_words(as_words, lengths), murmur_bytes(*buffer(values)))


def test_the_empty_value_has_a_hash():
    assert murmur_bytes(*buffer([b"", b"a"]))[0] not in (0, murmur_bytes(*buffer([b"a"]))[0])


@pytest.mark.parametrize("count", [0, 1, 2, 4096])
def test_sketches_that_count_are_the_bytes_that_datasketches_writes(count):
    theirs = ds.update_theta_sketch(12)
    for value in range(count):
        theirs.update(value)
    ours = make_theta(murmur_words(words(range(count), np.int64), 8))
    assert ours.to_bytes() == theirs.compact().serialize()


@pytest.mark.parametrize("count", [4097, 100_000, 600_000])
def test_sketches_that_estimate_are_read_by_datasketches(count):
    parts = np.array_split(np.arange(count, dtype=np.int64), 7)
    hashed = [murmur_words(values.view(np.uint64), 8) for part in parts for values in (part, part[:10])]
    ours, hashes = union_thetas(map(make_theta, hashed)), np.concatenate(hashed)
    wholes = (ours, make_theta(hashes), make_theta(np.sort(hashes), is_sorted=True))
    assert len({sketch.to_bytes() for sketch in wholes}) == 1
    theirs = ds.compact_theta_sketch.deserialize(ours.to_bytes())
    assert (list(theirs), theirs.theta64) == (ours.hashes.tolist(), ours.threshold)
    assert theirs.get_estimate() == pytest.approx(ours.estimate)
    assert ours.estimate == pytest.approx(count, rel=4 * ours.error)
    assert len(ours.hashes) == NOMINAL
    assert not ours.is_exact
    assert 0 < ours.error < 0.016


def test_a_sketch_of_datasketches_is_read():
    theirs = ds.update_theta_sketch(12)
    for value in range(50_000):
        theirs.update(value)
    ours = ThetaSketch.from_bytes(theirs.compact().serialize())
    assert ours.estimate == pytest.approx(theirs.get_estimate())


def test_duplicates_do_not_push_distinct_hashes_out():
    few = np.repeat(np.arange(1, 101, dtype=np.uint64), 10_000)
    hashes = np.concatenate([few, np.arange(10**6, 10**6 + 3000, dtype=np.uint64)])
    assert make_theta(hashes).estimate == make_theta(hashes, is_sorted=True).estimate == 3100


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 9_000)), min_size=1, max_size=6))
def test_a_union_is_what_datasketches_makes_of_the_same_sketches(ranges):
    sketches = []
    for start, length in ranges:
        values = np.arange(start, start + length, dtype=np.int64)
        sketches.append(make_theta(murmur_words(values.view(np.uint64), 8)))
    theirs = ds.theta_union(12)
    for sketch in sketches:
        theirs.update(ds.compact_theta_sketch.deserialize(sketch.to_bytes()))
    ours, truth = union_thetas(sketches), len(set().union(*(range(s, s + n) for s, n in ranges)))
    assert ours.to_bytes() == theirs.get_result().serialize()
    assert ours.estimate == truth if ours.is_exact else abs(ours.estimate / truth - 1) < 5 * ours.error


@pytest.mark.parametrize(
    "damage", [b"", b"\x03\x03\x03\x00\x00\x1a\xcc", bytes(8), b"\x02\x03\x03\x00\x00\x1a\xcc\x93\x09"]
)
def test_damaged_sketches_are_refused(damage):
    with pytest.raises(ValueError, match="theta sketch"):
        ThetaSketch.from_bytes(damage)


def test_the_empty_sketch_is_exact():
    assert (EMPTY.estimate, EMPTY.error, EMPTY.threshold) == (0.0, 0.0, ALL)
    by_java = bytes.fromhex("01030300001e0000")  # without the seed
    assert ThetaSketch.from_bytes(by_java) is ThetaSketch.from_bytes(EMPTY.to_bytes()) is EMPTY
