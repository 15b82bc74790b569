"""`metastore doctor` about the place of statistics, and about the statistics of a location."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

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
    found = findings(run, code=1)["store"]
    assert found["state"] == BROKEN
    assert found["fix"]


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
            found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}["store"]
            assert found["state"] == state
            assert found["fix"] or state == OK
            assert state == BROKEN or found["detail"] == (
                f"s3a://{bucket}/central can be read; ANALYZE tries, before all else, whether it can be written"
            )


def test_doctor_leaves_open_what_credentials_of_spark_may_read(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody's")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # where nobody answers
    found = doctor_store_checks.check_statistics("s3a://nowhere/t")
    assert (found.state, "cannot be read from s3a://nowhere/t" in found.detail) == (WARNING, True)
    assert "credentials of this shell" in found.fix


@pytest.mark.slow
def test_doctor_does_not_try_what_only_spark_reaches(run, healthy, monkeypatch):
    monkeypatch.setenv("METASTORE_STORE", "hdfs://nn/statistics")
    found = findings(run)["store"]
    assert (found["state"], found["detail"]) == (OK, "hdfs://nn/statistics is not tried: only Spark reaches it")


def test_doctor_finds_nothing_at_a_location(run, healthy, tmp_path):
    found = findings(run, tmp_path / "missing", code=1)
    assert (found["store"]["state"], "statistics" in found) == (BROKEN, False)
    assert found["store"]["detail"] == f"there is nothing at {tmp_path / 'missing'}"


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
    found = doctor_store_checks.check_statistics(str(location))
    assert (found.state, found.detail) == (OK, "of the current snapshot, all 2 data files")
    (tmp_path / "new").mkdir()
    assert doctor_store_checks.check_statistics(str(tmp_path / "new")).detail == "none so far: ANALYZE makes them"
    shutil.rmtree(location / "metadata")
    found = doctor_store_checks.check_statistics(str(location))
    assert (found.state, found.detail) == (OK, "only its catalog knows whether the table has moved on")
    assert doctor_store_checks.check_statistics("hdfs://nn/t").state == OK


def test_doctor_finds_a_table_that_has_moved_on(run, healthy, location):
    stores.metadata(location, 4, 3, {1: None, 2: 1, 3: 2})
    found = findings(run, location)["statistics"]
    assert (found["state"], "moved on since 2026-01-02" in found["detail"]) == (WARNING, True)
    assert found["fix"] == "metastore analyze cat.db.t"


def test_doctor_finds_statistics_of_another_table(location):
    stores.metadata(location, 4, 2, {1: None, 2: 1}, uuid="7d2a3a3e-0000-4000-8000-00000000000f")
    found = doctor_store_checks.check_statistics(str(location))
    assert (found.state, "belong to a table that was here before" in found.detail) == (BROKEN, True)
    assert found.fix == "Run: ANALYZE TABLE cat.db.t COMPUTE STATISTICS FOR ALL COLUMNS"


def rewrite_manifest(location, change):
    """Puts another manifest in the place of the one of a store."""
    (file,) = (location / "_metastore" / "log").glob("*.json")
    file.write_bytes(change(Manifest.from_bytes(file.read_bytes())))


def test_doctor_finds_data_files_without_statistics(location):
    def with_one_more(manifest):
        *others, last = manifest.snapshots
        return replace(manifest, snapshots=(*others, replace(last, files_total=3))).to_bytes()

    rewrite_manifest(location, with_one_more)
    found = doctor_store_checks.check_statistics(str(location))
    assert (found.state, found.detail) == (WARNING, "2 of 3 data files are analyzed")


@pytest.mark.parametrize(
    "left", [f"objects/.{uuid.UUID(int=1)}.tmp", f"log/probe-{uuid.UUID(int=1)}", "log/claim-full"]
)
def test_doctor_finds_what_a_killed_writer_left(location, left):
    (location / "_metastore" / left).write_bytes(b"")
    found = doctor_store_checks.check_statistics(str(location))
    assert (found.state, left in found.detail) == (WARNING, True)
    assert f"metastore gc {location} --delete" in found.fix


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda manifest: manifest.to_bytes()[:-10], "metastore analyze"),
        (lambda manifest: replace(manifest, requires=("later",)).to_bytes(), "Upgrade pyspark-metastore."),
    ],
)
def test_doctor_finds_statistics_that_cannot_be_read(location, change, told):
    rewrite_manifest(location, change)
    found = doctor_store_checks.check_store(str(location))
    assert (found.state, told in found.fix) == (BROKEN, True)
