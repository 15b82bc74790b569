from __future__ import annotations

import hashlib
from decimal import Decimal

from format import golden
from metastore.format.objects import decode_object, identify_object
from metastore.store import Store


def stored(folder):
    store = Store.open(str(folder))
    manifest = store.read()
    return store, manifest


def test_what_is_written_is_read(tmp_path):
    written = golden.write(tmp_path)
    store, manifest = stored(tmp_path)
    assert manifest == written
    rows = []
    for ref in manifest.blocks[0].summary:
        rows += store.get(ref.object).to_pylist(maps_as_pydicts="strict")
    for row, expected in zip(rows, golden._summary_rows(), strict=True):
        expected["sum_exact"] = None if expected.get("sum_exact") is None else Decimal(expected["sum_exact"])
        assert {k: v for k, v in row.items() if v is not None} == {k: v for k, v in expected.items() if v is not None}


def test_files_and_table_level_are_read(tmp_path):
    golden.write(tmp_path)
    store, manifest = stored(tmp_path)
    files = store.get(manifest.blocks[0].files).to_pylist(maps_as_pydicts="strict")
    assert [file["path"] for file in files] == golden.PATHS
    assert files[0]["partition"] == {"p": "a b", "": ""}
    assert files[1]["partition"] == {}
    assert files[2]["partition"] is None
    snapshot = manifest.snapshots[0]
    assert store.get(snapshot.table_files).column("deleted_rows").to_pylist() == [3, None, None, None]
    assert store.get(snapshot.summary).num_rows == len(golden.columns())
    assert store.get(snapshot.sketches)["theta"][0].as_py() == bytes(range(255, -1, -1))


def test_value_lists_and_histograms_are_read(tmp_path):
    golden.write(tmp_path)
    store, manifest = stored(tmp_path)
    file = store.get(manifest.blocks[0].files).to_pylist()[0]
    for kind, expected in (("frequencies", golden.frequency_rows()), ("histograms", golden.histogram_rows())):
        data = store.read_bytes(file[f"{kind}_name"])
        ref, _ = identify_object(file[f"{kind}_name"], data)
        assert (ref.length, ref.sha256) == (file[f"{kind}_length"], file[f"{kind}_sha256"])
        rows = decode_object(ref, data).to_pylist()
        present = [{name: value for name, value in row.items() if value is not None} for row in rows]
        assert str(present) == str(expected)  # NaN is not equal to itself


def test_it_is_the_same_at_every_run(tmp_path):
    digests = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        golden.write(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests.append({str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files})
    assert digests[0] == digests[1]


def test_expected_values_are_plain(tmp_path):
    values = {type(value) for row in golden.expected() for value in row.values()}
    assert values <= {str, bool, list, dict, type(None)}
