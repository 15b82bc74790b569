"""Large blocks as Python writes them: zones of every type, pages, identities; merging and verifying them."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from metastore.errors import DamagedObject
from metastore.format import object_layout, summary_pages
from metastore.format.hashing import pad_buffer, xxhash_bytes
from metastore.format.manifest import Manifest, parse_block_description
from metastore.format.object_schemas import FILES, SUMMARY, TABLE_FILES
from metastore.format.objects import BLOCK_KEY, encode_object, find_object_names, verify_chunks
from metastore.format.parquet_footer import read_footer
from metastore.format.table_column import Column
from metastore.format.value_rendering import decimal_to_bytes
from metastore.format.zones import IDENTITIES_KEY, build_zones, hash_identities
from metastore.store import Store
from metastore.store.block_merge import compact_blocks
from metastore.store.verification import verify_manifest
from pruning import zoned
from store.small_blocks import snapshot

COUNT = 2 * object_layout.ZONE_FILES + 5
ENCODED = {
    "long": ("bigint", (-5, 7), (-9, 8)),
    "double": ("double", (-0.5, 2.0), (-float("inf"), 3.5)),
    "binary": ("string", (b"b", b"x\xff"), (b"a", b"x\xff\xff")),
    "decimal": ("decimal(38,2)", tuple(map(decimal_to_bytes, (-1, 2))), tuple(map(decimal_to_bytes, (-300, 2**90)))),
}


def rows_of(encoding: str, first: dict, second: dict) -> tuple[pa.Table, Column]:
    """Rows of two data files in every zone of three."""
    name = "binary" if encoding == "decimal" else encoding
    column = Column(key="1", path=("x",), type=ENCODED[encoding][0], encoding=name)
    rows = [
        {"column": 0, "file": i, "rows": 10, "nulls": 1, "nans": 0, **(first if i % 2 else second)}
        for i in range(COUNT)
    ]
    return pa.Table.from_pylist(rows, SUMMARY), column


@pytest.mark.parametrize("encoding", ENCODED)
def test_bounds_of_every_type(encoding):
    _, value, other = ENCODED[encoding]
    name = "binary" if encoding == "decimal" else encoding
    rows, column = rows_of(encoding, *({f"lo_{name}": lo, f"hi_{name}": hi} for lo, hi in (value, other)))
    zones = build_zones(rows, [column], np.full(COUNT, 10)).to_pylist()
    assert [row["zone"] for row in zones] == [0, 1, 2]
    assert [row["rows"] for row in zones] == [10240, 10240, 50]
    assert {(row["nulls"] / row["rows"], row[f"lo_{name}"], row[f"hi_{name}"]) for row in zones} == {(0.1, *other)}


UNKNOWN = {
    "no lower bound": ({"lo_long": None}, {"lo_long"}),
    "no upper bound": ({"hi_long": None}, {"hi_long"}),
    "no null count": ({"nulls": None}, {"nulls"}),
    "no NaN count": ({"nans": None}, {"nans"}),
    "no rows": ({"rows": None}, {"rows", "nulls", "nans", "lo_long", "hi_long"}),
    "other rows": ({"rows": 11}, {"rows", "nulls", "nans", "lo_long", "hi_long"}),
    "inverted": ({"lo_long": 99}, {"rows", "nulls", "nans", "lo_long", "hi_long"}),
    "more nulls than rows": ({"nulls": 11}, {"rows", "nulls", "nans", "lo_long", "hi_long"}),
    "bounds without values": ({"nulls": 10}, {"rows", "nulls", "nans", "lo_long", "hi_long"}),
    "no values": ({"nulls": 10, "lo_long": None, "hi_long": None}, set()),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_one_data_file_makes_its_zone_unknown(name):
    change, unknown = UNKNOWN[name]
    row = {"column": 0, "rows": 10, "nulls": 0, "nans": 0, "lo_long": 3, "hi_long": 4}
    rows = [{**row, "file": i, **(change if i == 7 else {})} for i in range(COUNT)]
    column = Column(key="1", path=("x",), type="bigint", encoding="long")
    first, *later_zones = build_zones(pa.Table.from_pylist(rows, SUMMARY), [column], np.full(COUNT, 10)).to_pylist()
    counted = {"rows", "nulls", "nans", "lo_long", "hi_long"}
    assert {field for field in counted if first[field] is None} == unknown
    assert all(row[field] is not None for row in later_zones for field in counted)


def test_a_data_file_without_a_row_makes_its_zone_unknown():
    rows, column = rows_of("long", {"lo_long": 1, "hi_long": 2}, {"lo_long": 1, "hi_long": 2})
    zones = build_zones(rows.filter(pa.array(np.arange(COUNT) != 1500)), [column], np.full(COUNT, 10))
    assert [row["rows"] is None for row in zones.to_pylist()] == [False, True, False]


@pytest.mark.skipif(not summary_pages.cuts_pages_by_rows(), reason="this pyarrow cuts pages by bytes alone")
def test_pages_have_whole_zones_and_their_digests():
    rows, _ = rows_of("long", {"lo_long": 1}, {"hi_long": None})
    data = encode_object("summary", rows, [COUNT], {summary_pages.PAGE_ROWS_KEY: "1024"})
    footer = read_footer("summary", data)
    table = base64.b64decode(footer.texts[summary_pages.PAGES_KEY])
    size = 16 + 4 * len(summary_pages.PLANNED)
    assert len(table) == 3 * size
    starts = {chunk.name: chunk.start for chunk in footer.chunks(0)}
    for page in range(3):
        entry = table[page * size : (page + 1) * size]
        body = b""
        for name, length in zip(
            summary_pages.PLANNED, struct.unpack(f"<{len(summary_pages.PLANNED)}I", entry[16:]), strict=True
        ):
            body += data[starts[name] : starts[name] + length]
            starts[name] += length
        assert hashlib.sha256(body).digest()[:16] == entry[:16]


def test_pages_that_the_writer_cuts_by_bytes_are_no_pages_of_ours(monkeypatch):
    monkeypatch.setattr(summary_pages, "_MOST_PAGE_BYTES", 1)
    rows, _ = rows_of("long", {"lo_long": 1}, {"hi_long": None})
    texts = read_footer(
        "summary", encode_object("summary", rows, [COUNT], {summary_pages.PAGE_ROWS_KEY: "2048", "a": "b"})
    ).texts
    assert texts["a"] == "b"
    assert not {summary_pages.PAGE_ROWS_KEY, summary_pages.PAGES_KEY} & texts.keys()


@pytest.mark.skipif(not summary_pages.cuts_pages_by_rows(), reason="this pyarrow cuts pages by bytes alone")
def test_wrong_digests_of_pages_are_damage(tmp_path):
    store = Store.open(str(tmp_path), writable=True)
    rows, _ = rows_of("long", {"lo_long": 1}, {"hi_long": None})
    ref = store.put("summary", rows, [COUNT], {summary_pages.PAGE_ROWS_KEY: "1024"})
    data = store.read_bytes(ref.name)
    verify_chunks(ref, data)
    text = read_footer(ref.name, data).texts[summary_pages.PAGES_KEY]
    changed = data.replace(text.encode(), (text[:-6] + "AAAAA=").encode())
    footer = changed[-ref.footer_length :]
    with pytest.raises(DamagedObject, match="pages"):
        verify_chunks(replace(ref, footer_sha256=hashlib.sha256(footer).hexdigest()), changed)


def test_identities():
    listed = {"file": [1, 0], "path": ["b", "ä"], "size": [9, 8], "modified": pa.array([None, 7], pa.int64())}
    identities = base64.b64decode(hash_identities(pa.table(listed)))
    hashes = [xxh64("äb".encode("utf-16-le")), xxh64(struct.pack("<6q", 1, 8, 7, 1, 9, -1))]
    assert identities == struct.pack("<QQII", *hashes, zlib.crc32("ä".encode()), zlib.crc32(b"b"))


def xxh64(data: bytes) -> int:
    buffer = pad_buffer(np.frombuffer(data, np.uint8))
    return int(xxhash_bytes(buffer, np.zeros(1, np.int64), np.array([len(data)]))[0])


def test_blocks_become_zoned_when_they_are_merged(tmp_path):
    store = Store.open(str(tmp_path), writable=True)
    first_files, first_summary = zoned.random_block(1, 700)
    first, one_summary = zoned.write(tmp_path, first_files, first_summary, zoned.SMALL), first_summary[0]
    files, summary = zoned.random_block(3, 800)
    paths = pa.array(["other/" + path for path in files["path"].to_pylist()])
    other = zoned.write(tmp_path, files.set_column(1, FILES.field("path"), paths), summary, zoned.SMALL)
    blocks = (*first.blocks, replace(other.blocks[0], id="other"))
    assert [block.zones for block in blocks] == [(), ()]
    order = np.random.default_rng(5).permutation(1500)
    listed = pa.concat_tables(store.get(block.files, ["path", "size", "modified"]) for block in blocks).take(order)
    listed = store.put("table-files", pa.Table.from_pylist(listed.to_pylist(), TABLE_FILES), [1500])
    entry = replace(snapshot(store, "1"), table_files=listed)
    [block] = compact_blocks(
        Manifest(table=zoned.TABLE, blocks=blocks, snapshots=(entry,)), store, None, zoned=zoned.SMALL
    ).blocks
    assert store.get(block.files)["path"] == store.get(listed)["path"]
    of_first = pc.equal(store.get(block.summary[0].object)["column"], 0)
    merged = store.get(block.summary[0].object).filter(of_first)["lo_long"].to_pylist()
    before = pa.concat_tables([one_summary, summary[0]])["lo_long"].to_pylist()
    assert merged == [before[i] for i in order]
    assert [column for ref in block.zones for column in ref.columns] == list(range(len(zoned.COLUMNS)))
    assert max(len(ref.columns) for ref in block.summary) == 4
    texts = read_footer("files", store.read_bytes(block.files.name)).texts
    assert parse_block_description(texts[BLOCK_KEY], block.files)[0] == block
    assert len(base64.b64decode(texts[IDENTITIES_KEY])) == 2 * 24
    manifest = Manifest(table=zoned.TABLE, blocks=(block,))
    assert {damage.kind for damage in verify_manifest(store, manifest)} == {"files", "summary", "zones"}
    assert {ref.object.name for ref in block.zones} <= find_object_names(manifest.to_bytes())  # gc keeps what is named


def test_verify_compares_zones_with_their_data_files(tmp_path):
    store = Store.open(str(tmp_path), writable=True)
    files, _ = zoned.random_block(1, COUNT)
    counts = files["rows"].to_pylist()
    columns = [
        pa.Table.from_pylist(
            [
                {"column": c, "file": i, "rows": 5 if n is None else n, "nulls": 0, "nans": 0}
                for i, n in enumerate(counts)
            ],
            SUMMARY,
        )
        for c in range(len(zoned.COLUMNS))
    ]
    manifest = zoned.write(tmp_path, files, columns, zoned.SMALL)
    assert {verified.state for verified in verify_manifest(store, manifest)} == {"ok"}
    [block] = manifest.blocks
    rows = store.get(block.zones[0].object)
    position = rows.schema.get_field_index("lo_long")
    wrong = rows.set_column(position, rows.schema.field(position), pa.array([1] * rows.num_rows))
    ref = store.put("zones", wrong, object_layout.size_row_groups(wrong["column"], 1))
    lying = replace(block, zones=(replace(block.zones[0], object=ref),))
    states = {verified.kind: verified.state for verified in verify_manifest(store, replace(manifest, blocks=(lying,)))}
    assert states == {"files": "ok", "summary": "ok", "zones": "contradictory"}


def test_verify_compares_identities_with_the_data_files(tmp_path):
    manifest = zoned.write(tmp_path, *zoned.random_block(1, COUNT), zoned.SMALL)
    store, [block] = Store.open(str(tmp_path), writable=True), manifest.blocks
    rows = store.get(block.files)
    other_identities = {IDENTITIES_KEY: hash_identities(rows.slice(1))}
    lying = replace(block, files=store.put("files", rows, [rows.num_rows], other_identities))
    verified = next(iter(verify_manifest(store, replace(manifest, blocks=(lying,)))))
    assert (verified.state, verified.problem) == ("contradictory", "identities that are those of other data files")


def test_compaction_makes_missing_zones_again(tmp_path):
    store = Store.open(str(tmp_path), writable=True)
    files, summary = zoned.random_block(1, COUNT)
    manifest = zoned.write(tmp_path, files, summary, zoned.SMALL)
    before = [store.get(ref.object) for ref in manifest.blocks[0].zones]
    assert before
    assert compact_blocks(manifest, store, None, zoned=zoned.SMALL) == manifest
    [lost] = tmp_path.rglob(manifest.blocks[0].zones[0].object.name)
    lost.unlink()
    assert {verified.state for verified in verify_manifest(store, manifest) if verified.kind == "zones"} >= {"missing"}
    again = compact_blocks(manifest, store, None, zoned=zoned.SMALL)
    assert [store.get(ref.object) for ref in again.blocks[0].zones] == before
    assert {verified.state for verified in verify_manifest(store, again) if verified.kind == "zones"} == {"ok"}
