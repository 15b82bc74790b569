"""The shim on hostile lists, filters, histograms and ranks, digests right: damage is said, planning does without."""

from __future__ import annotations

import random
import time

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from format import hostile
from metastore.format.bloom_filter import BloomBuilder, bloom_hashes
from metastore.format.manifest import Block, Manifest, Snapshot, TableIdentity
from metastore.format.manifest_references import RanksRef, SummaryRef
from metastore.format.object_schemas import DETAILS, FILES, SCHEMAS, SUMMARY
from metastore.format.objects import encode_object
from metastore.format.parquet_footer import read_footer
from metastore.format.table_column import Column
from metastore.format.value_postings import STARTS_KEY, encode_hash_starts, hash_column_values
from pruning.scala import items, module, no_limits, open_store

pytestmark = pytest.mark.spark

TABLE = TableIdentity("iceberg", "u", "file:/w/t", "t")
REFUSALS = ("DamagedObjectException", "FormatTooNewException")
FILES_OF_A_BLOCK, VALUES = 3, 20
KINDS = ("bigint", "string", "string")
COLUMNS = tuple(
    Column(str(i), (f"c{i}",), kind, "long" if kind == "bigint" else "binary") for i, kind in enumerate(KINDS)
)
TABLE_KINDS = ("table-frequencies", "table-histograms", "table-ranks")


def value(column, number):
    return {"value_long": number} if COLUMNS[column].encoding == "long" else {"value_binary": b"k%d" % number}


def values_of(file):
    """Numbers from the whole range, in no file those of another."""
    return [FILES_OF_A_BLOCK * i + file for i in range(VALUES)]


def bloom(file):
    builder = BloomBuilder(VALUES)
    builder.add(bloom_hashes(pa.array([b"k%d" % number for number in values_of(file)])))
    return builder.finish(VALUES)


def made(kind, rows, groups=None):
    table = pa.Table.from_pylist(rows, SCHEMAS[kind])
    return encode_object(kind, table, groups or [len(rows) // 2, len(rows) - len(rows) // 2])


def sound():
    """One object of each kind, all true of three data files with twenty values each."""
    each = [(c, f) for c in range(2) for f in range(FILES_OF_A_BLOCK)]
    bins = {"kind": "equi_height", "counts": [5] * 4, "distincts": [5] * 4}
    everywhere = [(number, file) for file in range(FILES_OF_A_BLOCK) for number in values_of(file)]
    return {
        "frequencies": made("frequencies", [{"column": c, "file": f, **value(c, n), "frequency": 1} for c, f in each
                                            for n in values_of(f)]),
        "sketches": made("sketches", [{"column": 2, "file": f, "bloom": bloom(f)} for f in range(FILES_OF_A_BLOCK)]),
        "histograms": made("histograms", [{"column": 0, "file": f, **bins, "edges_long": list(range(5))}
                                          for f in range(FILES_OF_A_BLOCK)]),
        "table-frequencies": made("table-frequencies", [
            {"column": 0, "value_long": n, "frequency": 1, **({"files_sparse": [(f, 1)]} if n % 2 else
             {"files_dense": [int(f == i) for i in range(FILES_OF_A_BLOCK)]})} for n, f in everywhere]),
        "table-histograms": made("table-histograms", [{"column": 0, **bins, "edges_long": list(range(5))}] * 2),
        "table-ranks": made("table-ranks", [{"column": 0, "value_long": i, "rank": i + 1} for i in range(60)]),
        "table-files": made("table-files", [{"path": path(0, f), "size": 9, "rows": VALUES} for f in range(3)]),
    }  # fmt: skip


def path(block, file):
    return f"file:/w/t/{block}-{file}.parquet"


BASE = sound()
ROWS = {kind: read_footer(kind, data).rows for kind, data in BASE.items()}


def cut():
    """The lists that tell where values live in two row groups, by hashes."""
    rows = pa.Table.from_pylist(
        [
            {"column": 0, "value_long": n, "frequency": 1, "files_sparse": [(f, 1)]}
            for f in range(3)
            for n in values_of(f)
        ],
        SCHEMAS["table-frequencies"],
    )
    hashes = hash_column_values(rows, COLUMNS[0])
    order, half = np.argsort(hashes), len(hashes) // 2
    starts = {STARTS_KEY: encode_hash_starts(hashes[order][[0, half]])}
    told = [{"column": 0, "file": f, "rows": VALUES} for f in range(FILES_OF_A_BLOCK)]
    return {
        "table-frequencies": encode_object(
            "table-frequencies", rows.take(pa.array(order)), [half, len(rows) - half], starts
        ),
        "table-placed": made("table-placed", told),
        "table-files": BASE["table-files"],
    }


CUT = cut()
PLACES = {"by frequency": {kind: BASE[kind] for kind in ("table-frequencies", "table-files")}, "by hash": CUT}


def summary(columns):
    """Bounds that decide nothing."""
    rows = [
        {"column": c, "file": f, "rows": VALUES, "nulls": 0, "nans": 0, "distinct": VALUES,
         "frequencies": "complete" if kind != "filter" else "none",
         **({"lo_long": -9, "hi_long": 10**6} if kind == "long" else {"lo_binary": b"", "hi_binary": b"z"})}
        for c, kind in enumerate(columns) for f in range(FILES_OF_A_BLOCK)
    ]  # fmt: skip
    return encode_object("summary", pa.Table.from_pylist(rows, SUMMARY), [len(rows)])


class Folder:
    """A store that vouches for whatever is put there."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("objects", "log"):
            (folder / part).mkdir(parents=True)

    def put(self, kind, data, rows):
        ref = hostile.reference_of(kind, data, rows)
        (self.folder / "objects" / ref.name).write_bytes(data)
        return ref

    def files(self, block, details=None):
        """The list of a block's files, with their details."""
        named = {f"{kind}_{field}": getattr(ref, field) for kind, ref in (details or {}).items()
                 for field in ("name", "length", "sha256", "footer_length", "footer_sha256")}  # fmt: skip
        rows = [
            {"file": f, "path": path(block, f), "size": 9, "rows": VALUES, **named,
             **{f"{kind}_file": f for kind in details or {}}}
            for f in range(FILES_OF_A_BLOCK)
        ]  # fmt: skip
        return self.put("files", encode_object("files", pa.Table.from_pylist(rows, FILES), [len(rows)]), len(rows))


def mutations(kinds, seed, count, base=BASE):
    """The sound object of each kind, then changed ones."""
    yield from ((kind, base[kind]) for kind in kinds)
    for number in range(seed, seed + count):
        chance = random.Random(number)
        kind = chance.choice(kinds)
        yield kind, hostile.mutated(base[kind], chance)


def outcome(ask):
    """The only errors are those that say damage."""
    try:
        ask()
    except Py4JJavaError as failure:
        if failure.java_exception.getClass().getSimpleName() not in REFUSALS:
            raise
        return "damaged"
    return "read"


def opened(spark, folder):
    module(spark, "org.metastore.spark.statistics.cache.StatisticsCache").clear()
    return open_store(spark, folder)


def probe(spark, folder, columns):
    ddl = ", ".join(f"{column.name} {column.type}" for column in columns)
    probes = module(spark, "org.metastore.spark.pruning.PruningProbe")
    return probes.open(spark._jsparkSession, ddl, str(folder), TABLE.uuid)


def described(folder, objects):
    """A block for each hostile object; the other details of its files are sound."""
    kept = Folder(folder)
    whole = summary(["long", "list", "filter"])
    of_summary = kept.put("summary", whole, len(COLUMNS) * FILES_OF_A_BLOCK)
    for number, (kind, data) in enumerate(objects):
        refs = {each: kept.put(each, data if each == kind else BASE[each], ROWS[each]) for each in DETAILS}
        files = kept.files(number, refs)
        yield Block(str(number), "full", COLUMNS, files, (SummaryRef(of_summary, (0, 1, 2)),))


ASKED = ("c0 = 7", "c1 IN ('k7', 'k8')", "c2 = 'k7'", "c0 NOT IN (1, 2)", "c0 = 7 OR c1 = 'nothing'")


@pytest.mark.parametrize("seed", [0, pytest.param(300, marks=pytest.mark.slow)])
def test_lists_filters_and_histograms_of_data_files(spark, tmp_path, seed):
    objects = list(mutations(DETAILS, seed, 300))
    blocks = list(described(tmp_path / "t", objects))
    _committed(tmp_path / "t", blocks)
    store = opened(spark, tmp_path / "t")
    began = time.monotonic()
    found = [
        _read(spark, store, block, kind)
        for block, (kind, _) in zip(items(store.manifest().get().blocks()), objects, strict=True)
    ]
    assert found[: len(DETAILS)] == ["read"] * len(DETAILS)
    assert found.count("damaged") > 100
    asked = probe(spark, tmp_path / "t", COLUMNS)
    places = {name: place for place, name in enumerate(asked.paths())}
    for question in ASKED:
        kept = asked.kept(question)
        if question == "c0 = 7":  # of the sound objects
            assert [kept[places[path(0, file)]] for file in range(FILES_OF_A_BLOCK)] == ["0", "1", "0"]
    assert time.monotonic() - began < 120


def _committed(folder, blocks, snapshots=()):
    manifest = Manifest(TABLE, tuple(blocks), tuple(snapshots), sequence=1, commit="c", written_at="", writer="")
    (folder / "log" / f"{1:020}.json").write_bytes(manifest.to_bytes())


def _read(spark, store, block, kind):
    """Reads a kind of details of a block's files as SQL functions do."""
    option = spark._jvm.scala.Option
    row = store.dataFiles(block).apply(1)
    if kind == "sketches":
        return "read"  # by planning alone
    listed = getattr(row, kind)().get()
    if kind == "histograms":
        return outcome(lambda: store.histogram(listed.ref(), 0, option.apply(listed.file())))
    return outcome(lambda: store.values(listed.ref(), 1, option.apply(listed.file()), False))  # noqa: FBT003


@pytest.mark.slow
@pytest.mark.parametrize("layout", PLACES)
def test_where_values_live(spark, tmp_path, layout):
    """Each hostile list is that of a snapshot of its own, of a column of its own."""
    base = PLACES[layout]
    objects = list(mutations(tuple(base), 0, 250, base))
    rows = {kind: read_footer(kind, data).rows for kind, data in base.items()}
    columns = tuple(Column(str(i), (f"c{i}",), "bigint", "long") for i in range(len(objects)))
    kept = Folder(tmp_path / "t")
    of_summary = kept.put("summary", summary(["long"] * len(columns)), len(columns) * FILES_OF_A_BLOCK)
    block = Block("b", "full", columns, kept.files(0), (SummaryRef(of_summary, tuple(range(len(columns)))),))
    snapshots = []
    for number, (kind, data) in enumerate(objects):
        refs = {each: kept.put(each, data if each == kind else base[each], rows[each]) for each in base}
        lists = (SummaryRef(refs["table-frequencies"], (0,), None if layout == "by frequency" else (0, 1)),)
        more = {"frequencies": lists, "distribution": (0,), "placed": refs.get("table-placed")}
        snapshots.append(_snapshot(number, columns[number], refs["table-files"], **more))
    _committed(tmp_path / "t", [block], snapshots)
    module(spark, "org.metastore.spark.statistics.cache.StatisticsCache").clear()
    asked, began = probe(spark, tmp_path / "t", columns), time.monotonic()
    told = [asked.kept(f"c{number} = 7") for number in range(len(objects))]
    assert told[: len(base)] == ["010"] * len(base)
    assert told.count("111") > 50
    assert time.monotonic() - began < 120


def _snapshot(number, column, table_files, **more):
    facts = {"exact": True, "files": 3, "files_total": 3, "rows": 60, "physical_rows": 60}
    return Snapshot(
        str(number), "2026-01-31T12:00:00Z", "full", columns=(column,), size_bytes=1, live_size_bytes=1,
        table_files=table_files, **facts, **more,
    )  # fmt: skip


@pytest.mark.slow
def test_lists_histograms_and_ranks_of_tables(spark, tmp_path):
    objects = list(mutations(TABLE_KINDS, 0, 300))
    kept = Folder(tmp_path / "t")
    of_files = kept.put("table-files", BASE["table-files"], ROWS["table-files"])
    snapshots = []
    for number, (kind, data) in enumerate(objects):
        refs = {each: kept.put(each, data if each == kind else BASE[each], ROWS[each]) for each in TABLE_KINDS}
        snapshots.append(_snapshot(
            number, COLUMNS[0], of_files, frequencies=(SummaryRef(refs["table-frequencies"], (0,)),),
            histograms=refs["table-histograms"], ranks=(RanksRef(refs["table-ranks"], (0,), (0,)),),
        ))  # fmt: skip
    _committed(tmp_path / "t", [], snapshots)
    store, began = opened(spark, tmp_path / "t"), time.monotonic()
    none = no_limits(spark)
    found = []
    for snapshot, (kind, _) in zip(items(store.manifest().get().snapshots()), objects, strict=True):
        ask = {
            "table-frequencies": lambda s: store.values(s.frequencies().apply(0).ref(), 0, none, False),  # noqa: FBT003
            "table-histograms": lambda s: store.histogram(s.histograms().get(), 0, none),
            "table-ranks": lambda s: store.listRanks(s.ranks(), 0),
        }[kind]
        found.append(outcome(lambda ask=ask, snapshot=snapshot: ask(snapshot)))
    assert found[: len(TABLE_KINDS)] == ["read"] * len(TABLE_KINDS)
    assert found.count("damaged") > 100
    assert time.monotonic() - began < 120
