"""`metastore doctor` about the place of statistics, and about the statistics of a location."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.conftest import findings
from metastore.cli import doctor_store_checks
from metastore.cli.doctor_checks import BROKEN, OK, WARNING
from metastore.format.manifest import Manifest
from reading import stores
from store import s3


def test_doctor_finds_a_store_that_is_no_folder(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("METASTORE_STORE", str(tmp_path / "file"))
    result = findings(run, code=1)["store"]
    assert result["state"] == BROKEN
    assert result["fix"]


@pytest.mark.slow
def test_doctor_tries_a_store_on_s3_with_the_credentials_of_spark(run, healthy, monkeypatch, tmp_path):
    with s3.running() as address:
        keys = {"access.key": s3.KEY, "secret.key": s3.SECRET, "endpoint": address, "endpoint.region": "us-east-1"}
        lines = [f"spark.hadoop.fs.s3a.{key} {value}" for key, value in keys.items()]
        (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        for bucket, state in ((s3.BUCKET, OK), ("nowhere", BROKEN)):
            monkeypatch.setenv("METASTORE_STORE", f"s3a://{bucket}/central")
            done = run("doctor", "--json", code=int(state == BROKEN))
            assert s3.SECRET not in done.stdout + done.stderr
            result = {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}["store"]
            assert result["state"] == state
            assert result["fix"] or state == OK
            assert state == BROKEN or result["detail"] == (
                f"s3a://{bucket}/central can be read; ANALYZE tries, before all else, whether it can be written"
            )


def test_doctor_leaves_open_what_credentials_of_spark_may_read(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody's")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # where nobody answers
    result = doctor_store_checks.check_statistics("s3a://nowhere/t")
    assert (result.state, "cannot be read from s3a://nowhere/t" in result.detail) == (WARNING, True)
    assert "credentials of this shell" in result.fix


@pytest.mark.slow
def test_doctor_does_not_try_what_only_spark_reaches(run, healthy, monkeypatch):
    monkeypatch.setenv("METASTORE_STORE", "hdfs://nn/statistics")
    result = findings(run)["store"]
    assert (result["state"], result["detail"]) == (OK, "hdfs://nn/statistics is not tried: only Spark reaches it")


def test_doctor_finds_nothing_at_a_location(run, healthy, tmp_path):
    results = findings(run, tmp_path / "missing", code=1)
    assert (results["store"]["state"], "statistics" in results) == (BROKEN, False)
    assert results["store"]["detail"] == f"there is nothing at {tmp_path / 'missing'}"


IS_ROOTS = os.getuid() == 0 and any(not path.stat().st_mode & 0o005 for path in Path(sys.prefix).resolve().parents)


@pytest.mark.skipif(IS_ROOTS, reason="who may not write everywhere may not read this environment")
def test_doctor_finds_a_store_that_it_may_not_write(tmp_path):
    (tmp_path / "t").mkdir()
    for path in [*tmp_path.parents, tmp_path]:
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    (tmp_path / "t").chmod(0o555)
    code = (
        "import os, sys\nfrom metastore.cli.doctor_store_checks import check_store\n"
        "check_store(sys.argv[1])  # imports\n"
        "os.getuid() or (os.setgroups([]), os.setgid(65534), os.setuid(65534))  # root may write everywhere\n"
        "found = check_store(sys.argv[1]); print(found.state, found.fix, sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "t"], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"broken|chmod u+w {tmp_path / 't'}", done.stderr


def test_doctor_is_content_with_statistics_of_the_current_snapshot(location, tmp_path):
    result = doctor_store_checks.check_statistics(str(location))
    assert (result.state, result.detail) == (OK, "of the current snapshot, all 2 data files")
    (tmp_path / "new").mkdir()
    assert doctor_store_checks.check_statistics(str(tmp_path / "new")).detail == "none so far: ANALYZE makes them"
    shutil.rmtree(location / "metadata")
    result = doctor_store_checks.check_statistics(str(location))
    assert (result.state, result.detail) == (OK, "only its catalog knows whether the table has moved on")
    assert doctor_store_checks.check_statistics("hdfs://nn/t").state == OK


MISSPELT = {"metastore.analyze.atuo": "true", "metastore.analyze.auto": "on", "owner": "us"}
RIGHT = {"metastore.analyze.auto": "true", "owner": "us"}
NOT_SET = "none of the Metastore's is set"


def write_iceberg(table, name, properties):
    """The metadata file of an Iceberg table with these properties."""
    (table / "metadata").mkdir(parents=True, exist_ok=True)
    data = json.dumps({"table-uuid": stores.UUID, "properties": properties}).encode()
    (table / "metadata" / name).write_bytes(gzip.compress(data) if ".gz" in name else data)


def write_delta(table, name, configuration):
    """A file of a Delta table's log: one action, which sets these properties where it has any."""
    (table / "_delta_log").mkdir(parents=True, exist_ok=True)
    metadata = None if configuration is None else {"id": stores.UUID, "configuration": configuration}
    actions = [{"protocol": {"minReaderVersion": 1}}, *([{"metaData": metadata}] if metadata else [])]
    if not name.endswith(".parquet"):
        (table / "_delta_log" / name).write_text("\n".join(map(json.dumps, actions)))
        return
    fields = [("id", pa.string()), ("configuration", pa.map_(pa.string(), pa.string()))]
    rows = [{"metaData": None}, {"metaData": {**metadata, "configuration": list(configuration.items())}}]
    schema = pa.schema([("metaData", pa.struct(fields))])
    pq.write_table(pa.Table.from_pylist(rows, schema), table / "_delta_log" / name)


def version(number):
    return f"{number:020}"


IDS = [f"{uuid.UUID(int=number)}" for number in range(2)]
METADATA = {
    "iceberg": (write_iceberg, {"v1.metadata.json": {}, "v2.metadata.json": MISSPELT}),
    "iceberg, zipped": (write_iceberg, {"v9.gz.metadata.json": {}, "v10.gz.metadata.json": MISSPELT}),
    "iceberg of a catalog": (
        write_iceberg,
        {f"00000-{IDS[0]}.metadata.json": {}, f"00001-{IDS[1]}.metadata.json": MISSPELT},
    ),
    "delta": (write_delta, {f"{version(0)}.json": {}, f"{version(1)}.json": MISSPELT, f"{version(2)}.json": None}),
    "delta, checkpoint": (
        write_delta,
        {
            f"{version(0)}.json": {},
            f"{version(9)}.json": None,
            f"{version(9)}.checkpoint.parquet": MISSPELT,
            f"{version(10)}.json": None,
        },
    ),
}


@pytest.mark.parametrize("kind", METADATA)
def test_doctor_finds_misspelt_table_properties(run, healthy, tmp_path, kind):
    write, files = METADATA[kind]
    for name, properties in files.items():
        write(tmp_path / "t", name, properties)
    result = findings(run, tmp_path / "t")["table properties"]
    assert result["state"] == WARNING
    assert result["detail"].split("; ") == [
        "metastore.analyze.atuo: there is no such table property. Did you mean metastore.analyze.auto?",
        "metastore.analyze.auto: 'on' is none of true, false",
    ]
    assert "UNSET TBLPROPERTIES ('metastore.analyze.atuo', 'metastore.analyze.auto')" in result["fix"]


@pytest.mark.parametrize(
    ("write", "name", "properties", "detail"),
    [
        (write_iceberg, "v3.metadata.json", RIGHT, "metastore.analyze.auto=true"),
        (write_iceberg, "v3.metadata.json", {}, NOT_SET),
        (write_delta, f"{version(0)}.json", RIGHT, "metastore.analyze.auto=true"),
        (write_delta, f"{version(0)}.json", {}, NOT_SET),
        (write_delta, f"{version(0)}.json", None, "only its catalog knows them"),
        (None, None, None, "only its catalog knows them"),
    ],
)
def test_doctor_is_content_with_table_properties(tmp_path, write, name, properties, detail):
    if write is not None:
        write(tmp_path, name, properties)
    result = doctor_store_checks.check_table_properties(str(tmp_path))
    assert (result.state, result.detail) == (OK, detail)


@pytest.mark.parametrize("misspelt", ["iceberg", "delta"])
def test_doctor_reads_both_formats_of_a_uniform_table(tmp_path, misspelt):
    write_iceberg(tmp_path, "v3.metadata.json", MISSPELT if misspelt == "iceberg" else {})
    write_delta(tmp_path, f"{version(0)}.json", MISSPELT if misspelt == "delta" else {})
    result = doctor_store_checks.check_table_properties(str(tmp_path))
    assert result.state == WARNING
    assert "metastore.analyze.atuo: there is no such table property" in result.detail


def test_doctor_asks_no_metadata_of_which_several_are_the_newest(tmp_path):
    for name in IDS:
        write_iceberg(tmp_path, f"00001-{name}.metadata.json", MISSPELT)
    assert doctor_store_checks.check_table_properties(str(tmp_path)).detail == "only its catalog knows them"


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}\n7"])
def test_doctor_goes_on_where_metadata_cannot_be_read(tmp_path, content):
    for folder, name in (("metadata", "v1.metadata.json"), ("_delta_log", f"{version(0)}.json")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(content)
    assert doctor_store_checks.check_table_properties(str(tmp_path)).state == OK


def test_doctor_finds_a_table_that_has_moved_on(run, healthy, location):
    stores.metadata(location, 4, 3, {1: None, 2: 1, 3: 2})
    result = findings(run, location)["statistics"]
    assert (result["state"], "moved on since 2026-01-02" in result["detail"]) == (WARNING, True)
    assert result["fix"] == "metastore analyze cat.db.t"


def test_doctor_finds_statistics_of_another_table(location):
    stores.metadata(location, 4, 2, {1: None, 2: 1}, uuid="7d2a3a3e-0000-4000-8000-00000000000f")
    result = doctor_store_checks.check_statistics(str(location))
    assert (result.state, "belong to a table that was here before" in result.detail) == (BROKEN, True)
    assert result.fix == "Run: metastore analyze cat.db.t"


def rewrite_manifest(location, change):
    """Puts another manifest in the place of the one of a store."""
    (file,) = (location / "_metastore" / "log").glob("*.json")
    file.write_bytes(change(Manifest.from_bytes(file.read_bytes())))


def test_doctor_finds_data_files_without_statistics(location):
    def with_one_more(manifest):
        *earlier, last = manifest.snapshots
        return replace(manifest, snapshots=(*earlier, replace(last, files_total=3))).to_bytes()

    rewrite_manifest(location, with_one_more)
    result = doctor_store_checks.check_statistics(str(location))
    assert (result.state, result.detail) == (WARNING, "2 of 3 data files are analyzed")


@pytest.mark.parametrize(
    "leftover", [f"objects/.{uuid.UUID(int=1)}.tmp", f"log/probe-{uuid.UUID(int=1)}", "log/claim-full"]
)
def test_doctor_finds_what_a_killed_writer_left(location, leftover):
    (location / "_metastore" / leftover).write_bytes(b"")
    result = doctor_store_checks.check_statistics(str(location))
    assert (result.state, leftover in result.detail) == (WARNING, True)
    assert f"metastore gc {location} --delete" in result.fix


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda manifest: manifest.to_bytes()[:-10], "metastore analyze"),
        (lambda manifest: replace(manifest, requires=("later",)).to_bytes(), "Upgrade pyspark-metastore."),
    ],
)
def test_doctor_finds_statistics_that_cannot_be_read(location, change, detail):
    rewrite_manifest(location, change)
    result = doctor_store_checks.check_store(str(location))
    assert (result.state, detail in result.fix) == (BROKEN, True)
