"""Bloom filters against xxHash itself and Parquet's own implementation."""

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from metastore.format import bloom_writer
from metastore.format.bloom_filter import BLOCK_BYTES, BloomBuilder, fold_filter, may_hold
from metastore.format.bloom_filter import bloom_hashes as hashes_of_stored
from metastore.format.hashing import pad_buffer, xxhash_bytes, xxhash_words

_MANY = 20_000


def built(hashes, room=None, most_bytes=1 << 30):
    builder = BloomBuilder(len(hashes) if room is None else room)
    builder.add(hashes)
    return builder.finish(len(hashes), most_bytes)


def hashes_of(values):
    data = pad_buffer(np.frombuffer(b"".join(values), dtype=np.uint8))
    lengths = np.array([len(value) for value in values], dtype=np.int64)
    return xxhash_bytes(data, np.cumsum(lengths) - lengths, lengths)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_longs_hash_as_xxhash_hashes_them(values):
    words = np.array(values, dtype=np.int64).view(np.uint64)
    assert xxhash_words(words).tolist() == [
        xxhash.xxh64_intdigest(v.to_bytes(8, "little", signed=True)) for v in values
    ]


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=50))
def test_bytes_hash_as_xxhash_hashes_them(values):
    assert hashes_of(values).tolist() == [xxhash.xxh64_intdigest(value) for value in values]


@pytest.mark.parametrize("length", [*range(70), 1023, 1024, 1025, 40_000])
def test_lengths_at_the_edges_of_stripes(length):
    values = [bytes(i % 251 for i in range(length)), b"x" * length, b"short"]
    assert hashes_of(values).tolist() == [xxhash.xxh64_intdigest(value) for value in values]


def test_every_value_is_found_and_few_others():
    hashes = xxhash_words(np.arange(2 * _MANY, dtype=np.uint64))
    bloom = built(hashes[:_MANY])
    assert may_hold(bloom, hashes[:_MANY]).all()
    assert may_hold(bloom, hashes[_MANY:]).mean() < 0.02


def test_a_folded_filter_is_the_filter_of_that_size():
    hashes = xxhash_words(np.arange(_MANY, dtype=np.uint64))
    small = built(hashes, room=_MANY)
    assert built(hashes, room=32 * _MANY) == small
    assert len(fold_filter(np.frombuffer(small, np.uint8), BLOCK_BYTES)) == BLOCK_BYTES


def test_a_filter_that_must_be_smaller_errs_more_and_one_that_would_say_nothing_is_left_out():
    hashes = xxhash_words(np.arange(_MANY, dtype=np.uint64))
    bloom_filter = built(hashes)
    half = built(hashes, most_bytes=len(bloom_filter) - 1)
    assert len(half) == len(bloom_filter) // 2
    assert may_hold(half, hashes).all()
    assert built(hashes, most_bytes=len(bloom_filter) // 4) is None
    assert built(hashes[:3], most_bytes=BLOCK_BYTES - 1) is None


def test_parquet_finds_what_we_added(spark):
    first = 1 << 40  # py4j hands smaller numbers over as ints, which hash otherwise
    hashes = xxhash_words(np.arange(first, first + 2_000, dtype=np.uint64))
    bloom = built(hashes[:1_000])
    theirs = spark._jvm.org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter(bloom)
    assert [theirs.hash(first + n) for n in range(3)] == hashes[:3].astype(np.int64).tolist()
    found_by_spark = [theirs.findHash(h) for h in hashes.astype(np.int64).tolist()]
    assert found_by_spark == may_hold(bloom, hashes).tolist()
    assert all(found_by_spark[:1_000])


STORED = {
    "long": pa.array(np.arange(-_MANY, _MANY, dtype=np.int64) * 7919),
    "double": pa.array(np.append(np.arange(_MANY) / 7, np.nan)),
    "binary": pa.array([str(n).encode() * (n % 40) for n in range(_MANY)], pa.large_binary()),
    "decimal": pa.array([n.to_bytes(16, "big") for n in range(_MANY)], pa.binary()),
    "slice": pa.array([b"%d" % n for n in range(_MANY)], pa.large_binary())[3:-5],
}


@pytest.mark.skipif(not bloom_writer.writes_bloom_filters(), reason="this pyarrow writes no bloom filters")
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("room", [_MANY // 2, 100 * _MANY])
def test_the_writer_of_pyarrow_sets_the_same_bits(kind, room):
    values, native = STORED[kind], BloomBuilder(room)
    assert bloom_writer.build_filter(values, len(built(hashes_of_stored(values)))) is not None
    native.add_values(values)
    built_here = BloomBuilder(room)
    built_here.add(hashes_of_stored(values))
    assert native.finish(len(values)) == built_here.finish(len(values))


def test_filters_of_many_slices_are_joined(monkeypatch):
    monkeypatch.setattr(bloom_writer, "_AT_ONCE", 1 << 14)
    values = STORED["binary"]
    native = BloomBuilder(len(values))
    native.add_values(values)
    assert native.finish(len(values)) == built(hashes_of_stored(values))


def test_a_filter_that_the_writer_does_not_make_is_made_here(monkeypatch):
    monkeypatch.setattr(bloom_writer, "build_filter", lambda *_: None)
    builder = BloomBuilder(_MANY)
    builder.add_values(STORED["slice"])
    assert builder.finish(_MANY) == built(hashes_of_stored(STORED["slice"]))


def test_little_among_much_room_is_not_left_to_the_writer():
    few = BloomBuilder(1 << 20)
    few.add_values(pa.array([1, 2]))
    assert few.finish(2) == built(xxhash_words(np.array([1, 2], np.uint64)))
