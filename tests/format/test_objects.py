from __future__ import annotations

import base64
import hashlib
import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.errors import DamagedObject
from metastore.format import object_layout, parquet_footer
from metastore.format.documents import to_document
from metastore.format.object_schemas import FILES, SCHEMAS, SKETCHES, SUMMARY
from metastore.format.objects import (
    ObjectRef,
    chunk_digests,
    content_name,
    decode_object,
    encode_object,
    identify_object,
    make_reference,
    object_kind,
)
from metastore.format.parquet_footer import read_footer

LONGS = st.none() | st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.none() | st.floats(allow_nan=False)
BYTES = st.none() | st.binary(max_size=70)
BY_TYPE = {
    pa.int32(): st.none() | st.integers(-(2**31), 2**31 - 1),
    pa.int64(): LONGS,
    pa.float64(): DOUBLES,
    pa.binary(): BYTES,
    pa.bool_(): st.none() | st.booleans(),
    pa.string(): st.none() | st.text(max_size=20),
    pa.decimal128(38, 0): st.none() | st.decimals(-(10**38) + 1, 10**38 - 1, places=0, allow_nan=False),
    pa.list_(pa.int64()): st.none() | st.lists(LONGS, max_size=4),
    pa.list_(pa.float64()): st.none() | st.lists(DOUBLES, max_size=4),
    pa.list_(pa.binary()): st.none() | st.lists(BYTES, max_size=4),
    pa.map_(pa.string(), pa.binary()): st.none() | st.dictionaries(st.text(max_size=3), BYTES, max_size=3),
    pa.map_(pa.string(), pa.string()): st.none()
    | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
    pa.map_(pa.int32(), pa.int64()): st.none() | st.dictionaries(st.integers(0, 2**31 - 1), LONGS, max_size=3),
}
REQUIRED = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.string(): st.text(max_size=20),
    pa.binary(): st.binary(max_size=70),
}


def rows_of(schema):
    fields = {f.name: BY_TYPE[f.type] if f.nullable else REQUIRED[f.type] for f in schema}
    return st.lists(st.fixed_dictionaries(fields), max_size=5)


def table_of(schema, rows):
    return pa.Table.from_pylist(
        [{k: list(v.items()) if isinstance(v, dict) else v for k, v in row.items()} for row in rows], schema
    )


def object_of(kind, table, row_groups=None, extra=None):
    data = encode_object(kind, table, row_groups or ([table.num_rows] if table.num_rows else []), extra)
    return make_reference(content_name(kind, data), data, table.num_rows), data


def a_summary(columns=4, files=3):
    rows = [
        {"column": c, "file": f, "rows": 10, "nulls": 0, "lo_long": c, "hi_long": f, "lo_binary": b"x" * f, "mean": 0.5}
        for c in range(columns)
        for f in range(files)
    ]
    return table_of(SUMMARY, rows)


@pytest.mark.parametrize("kind", SCHEMAS)
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_what_is_encoded_is_decoded(kind, data):
    table = table_of(SCHEMAS[kind], data.draw(rows_of(SCHEMAS[kind])))
    decoded = decode_object(*object_of(kind, table))
    assert decoded.schema.equals(SCHEMAS[kind])
    assert decoded.equals(table)


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, float("inf"), float("-inf"), 1.7976931348623157e308])
def test_doubles_keep_their_bits(value):
    table = table_of(SUMMARY, [{"column": 0, "file": 0, "lo_double": value, "percentiles_double": [value]}])
    [row] = decode_object(*object_of("summary", table)).to_pylist()
    assert (repr(row["lo_double"]), repr(row["percentiles_double"])) == (repr(value), repr([value]))


def test_columns_asked_for():
    table = a_summary()
    decoded = decode_object(*object_of("summary", table), ["file", "lo_long"])
    assert decoded.equals(table.select(["file", "lo_long"]))


def test_digests_are_those_of_the_chunks():
    _, data = object_of("summary", a_summary(), [3, 3, 6])
    metadata = pq.read_metadata(io.BytesIO(data))
    stored = base64.b64decode(metadata.metadata[b"metastore.digests"])
    assert len(stored) == 3 * metadata.num_columns * 16
    chunk = metadata.row_group(1).column(3)
    start = (metadata.num_columns + 3) * 16
    body = data[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size]
    assert stored[start : start + 16] == hashlib.sha256(body).digest()[:16]
    assert stored == chunk_digests(read_footer("summary", data), data)


def test_chunks_fill_the_object_from_its_magic_to_its_footer():
    ref, data = object_of("summary", a_summary(), [3, 3, 6])
    footer = read_footer(ref.name, data)
    spans = sorted((chunk.start, chunk.length) for group in range(3) for chunk in footer.chunks(group))
    ends = [start + length for start, length in spans]
    assert [start for start, _ in spans] == [4, *ends[:-1]]
    assert ends[-1] == ref.length - ref.footer_length


def test_the_footer_is_what_the_reference_says():
    ref, data = object_of("summary", a_summary())
    tail = data[-ref.footer_length :]
    assert hashlib.sha256(tail).hexdigest() == ref.footer_sha256
    assert int.from_bytes(tail[-8:-4], "little") == len(tail) - 8


def test_encodings_are_those_of_the_page():
    _, data = object_of("summary", a_summary())
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    encodings = {
        group.column(i).path_in_schema: set(group.column(i).encodings) - {"RLE"} for i in range(group.num_columns)
    }
    assert encodings["column"] == encodings["percentiles_long.list.element"] == {"DELTA_BINARY_PACKED"}
    assert (
        encodings["lo_binary"] == encodings["frequencies"] == encodings["extra.key_value.key"] == {"DELTA_BYTE_ARRAY"}
    )
    assert encodings["lo_double"] == encodings["sum_exact"] == {"PLAIN"}
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}


@pytest.mark.parametrize("kind", ["summary", "table-summary"])
def test_footers_of_sixteen_row_groups_stay_below_64_kb(kind):
    table = pa.Table.from_pylist([{"column": c, "file": 0} for c in range(16)], SCHEMAS[kind])
    ref, _ = object_of(kind, table, [1] * 16)
    assert ref.footer_length <= 64_000


def test_extra_texts_stand_in_the_footer():
    ref, data = object_of("files", FILES.empty_table(), [], {"metastore.block": '{"a": "ä"}'})
    assert identify_object(ref.name, data)[0] == ref
    assert identify_object(ref.name, data)[1]["metastore.block"] == '{"a": "ä"}'


@pytest.mark.parametrize("groups", [[1], [2, 2], [3, 0], [4, -1]])
def test_row_groups_have_to_add_up(groups):
    with pytest.raises(ValueError, match="row groups"):
        encode_object("sketches", table_of(SKETCHES, [{"column": 0, "file": f} for f in range(3)]), groups)


def test_required_columns_refuse_null():
    with pytest.raises((ValueError, pa.ArrowException)):
        encode_object(
            "sketches",
            pa.table({"column": [None], "file": [1], "theta": [b""], "bloom": [None], "registers": [None]}),
            [1],
        )


@pytest.mark.parametrize("seed", range(6))
def test_no_flipped_bit_is_ever_read(seed):
    ref, data = object_of("summary", a_summary())
    numbers = random.Random(seed)
    for _ in range(100):
        damaged = bytearray(data)
        damaged[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
        with pytest.raises(DamagedObject):
            decode_object(ref, bytes(damaged))


def test_no_flipped_bit_of_an_unreferenced_object_is_ever_read():
    ref, data = object_of("summary", a_summary(2, 2))
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(DamagedObject):
            identify_object(ref.name, bytes(damaged))


@pytest.mark.parametrize("cut", [0, 3, 8, 100, -1])
def test_truncated_bytes(cut):
    ref, data = object_of("summary", a_summary())
    with pytest.raises(DamagedObject):
        decode_object(ref, data[:cut])
    with pytest.raises(DamagedObject):
        identify_object(ref.name, data[:cut])


@pytest.mark.parametrize(
    "name",
    ["", "summary.parquet", "../summary-%s.parquet", "a/summary-%s.parquet",
     "summary-%s.parquet\n", "Summary-%s.parquet",
     "summary-%s.json", "-%s.parquet", None, 7],
)  # fmt: skip
def test_names_that_are_none(name):
    name = name % "0d61fbb2-3f3c-4b2a-9c0e-6b8f0c7b0a11" if isinstance(name, str) and "%s" in name else name
    with pytest.raises(DamagedObject):
        object_kind(name)


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False, **options)
    data = sink.getvalue()
    return make_reference(content_name("sketches", data), data, table.num_rows), data


def test_sizes_are_limited_before_decoding(monkeypatch):
    ref, data = object_of("sketches", table_of(SKETCHES, [{"column": 0, "file": f, "theta": b"x"} for f in range(9)]))
    decode_object(ref, data)
    monkeypatch.setattr(parquet_footer, "MAX_BYTES", 2)
    with pytest.raises(DamagedObject, match="bytes when decoded"):
        decode_object(ref, data)


def test_what_expands_when_decoded_is_counted(monkeypatch):
    monkeypatch.setattr(parquet_footer, "FEW_BYTES", 10_000_000)
    monkeypatch.setattr(parquet_footer, "MOST_EXPANSION", 0)
    prefix = b"y" * 100_000  # DELTA_BYTE_ARRAY repeats it for nothing
    ref, data = object_of(
        "sketches", table_of(SKETCHES, [{"column": 0, "file": f, "theta": prefix} for f in range(500)])
    )
    assert len(data) < 10_000
    with pytest.raises(DamagedObject, match="more than"):
        decode_object(ref, data)


def test_rows_are_those_named():
    ref, data = object_of("sketches", table_of(SKETCHES, [{"column": 0, "file": 0}]))
    with pytest.raises(DamagedObject, match="1 rows where 2"):
        decode_object(ObjectRef(**{**to_document(ref), "rows": 2}), data)


def test_columns_of_other_versions():
    table = pa.table({"later": ["x"], "file": pa.array([3], pa.int32()), "column": pa.array([2], pa.int32())})
    ref, data = parquet(table, use_dictionary=False, compression="zstd")
    assert decode_object(ref, data).to_pylist() == [
        {"column": 2, "file": 3, "theta": None, "bloom": None, "registers": None}
    ]


@pytest.mark.parametrize(
    "columns",
    [
        {"column": [1]},
        {"column": [None], "file": [1]},
        {"column": ["x"], "file": [1]},
        {"column": [2**40], "file": [1]},
    ],
)
def test_objects_of_another_shape(columns):
    ref, data = parquet(pa.table(columns), use_dictionary=False)
    with pytest.raises(DamagedObject):
        decode_object(ref, data)


def test_unknown_kinds():
    ref, data = object_of("sketches", SKETCHES.empty_table())
    with pytest.raises(DamagedObject, match="not known"):
        decode_object(ObjectRef(**{**to_document(ref), "name": ref.name.replace("sketches", "secrets")}), data)


@pytest.mark.parametrize(
    ("columns", "per_group", "groups"), [([], 4, []), ([7], 4, [1]), ([0, 0, 1, 2, 2, 2], 2, [3, 3])]
)
def test_row_groups_by_column(columns, per_group, groups):
    assert object_layout.size_row_groups(pa.chunked_array([columns], pa.int32()), per_group) == groups


def test_layout_follows_the_number_of_files():
    assert (object_layout.columns_per_object(1000), object_layout.columns_per_row_group(1000)) == (64, 16)
    assert (object_layout.columns_per_object(1001), object_layout.columns_per_row_group(1001)) == (16, 1)
