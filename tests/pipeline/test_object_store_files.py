"""Data files on an object store: tasks read ranges of them, and find what they find in the same files on a disk."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metastore import jvm_session
from metastore.errors import UnsupportedTable
from metastore.format.data_files import DataFile
from metastore.format.manifest import FOOTER, FULL, TableIdentity
from metastore.format.table_column import Column
from metastore.kernel.parquet_file import find_spark_only_reason
from metastore.pipeline.block_task import BlockDestination, BlockTask, run_block_task
from metastore.spark_jobs import table_access
from metastore.spark_jobs.table_access import find_data_file_access
from metastore.spark_jobs.task_store import TaskStore
from metastore.store import data_file_access
from metastore.store.credentials import Credentials, open_file_system
from metastore.store.data_file_access import LOCAL_FILES, DataFileAccess
from store import s3

if TYPE_CHECKING:
    from pathlib import Path

TABLE = TableIdentity("iceberg", "00000000-0000-4000-8000-000000000001", "/w/t", "db.t")
SETTINGS = {"histogram_bins": 100, "frequencies_top": 1000}
BUCKET = f"s3://{s3.BUCKET}"
COLUMNS = (
    Column(key='["id"]', path=("id",), type="bigint", encoding="long"),
    Column(key='["price"]', path=("price",), type="double", encoding="double"),
    Column(key='["name"]', path=("name",), type="string", encoding="binary"),
)


@pytest.fixture(scope="module")
def credentials():
    with s3.running() as address:
        yield s3.access(address)


@pytest.fixture(scope="module")
def local_files(tmp_path_factory) -> list[Path]:
    """Two files: one with several row groups and dictionaries, one without rows that are null."""
    folder = tmp_path_factory.mktemp("data")
    numbers = random.Random(7)
    paths = []
    for number, rows in enumerate((20_000, 300)):
        table = pa.table(
            {
                "id": range(rows),
                "price": [None if numbers.random() < number * 0.1 else numbers.gauss(0, 100) for _ in range(rows)],
                "name": [f"customer {numbers.randrange(1 + rows // 10)}" for _ in range(rows)],
            }
        )
        path = folder / f"part {number}%20.parquet"
        pq.write_table(table, path, row_group_size=6_000)
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def remote_files(local_files, credentials) -> list[str]:
    """The same files in the bucket."""
    system, root = open_file_system(f"{BUCKET}/db/t", credentials)
    for path in local_files:
        with path.open("rb") as source, system.open_output_stream(f"{root}/{path.name}") as target:
            shutil.copyfileobj(source, target)
    return [f"s3a://{s3.BUCKET}/db/t/{path.name}" for path in local_files]


def list_files(paths: list[Path], locations: list[str]) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(
            path=path.name,
            size=path.stat().st_size,
            rows=pq.read_metadata(path).num_rows,
            format="parquet",
            open_location=location,
        )
        for path, location in zip(paths, locations, strict=True)
    )


def analyze(folder: Path, files: tuple[DataFile, ...], access: DataFileAccess, depth: str = FULL):
    destination = BlockDestination(
        store=TaskStore(str(folder)), table=TABLE, settings=SETTINGS, budget=1 << 30, access=access
    )
    return run_block_task(
        destination, BlockTask(depth=depth, columns=COLUMNS, files=files, defaults={}, absent_is_null=True)
    )


def read_rows(folder: Path) -> dict[str, pa.Table]:
    """The rows of each object that a task wrote, by its kind; the list of files names objects, which are unique."""
    tables = {path.name.split("-")[0]: pq.read_table(path) for path in (folder / "objects").iterdir()}
    del tables["files"]
    return tables


@pytest.mark.parametrize("depth", [FULL, FOOTER])
def test_the_same_statistics_as_on_a_disk(tmp_path, local_files, remote_files, credentials, depth):
    access = DataFileAccess(prefixes={BUCKET: credentials})
    remote = analyze(tmp_path / "remote", list_files(local_files, remote_files), access, depth)
    local = analyze(tmp_path / "local", list_files(local_files, list(map(str, local_files))), LOCAL_FILES, depth)
    assert remote.unread == local.unread == ()
    assert read_rows(tmp_path / "remote") == read_rows(tmp_path / "local")


def test_a_file_that_is_gone_is_left_to_spark(tmp_path, local_files, remote_files, credentials):
    access = DataFileAccess(prefixes={BUCKET: credentials})
    present, gone = list_files(local_files, [remote_files[0], f"s3a://{s3.BUCKET}/db/t/gone.parquet"])
    result = analyze(tmp_path, (present, gone), access)
    assert result.paths == (present.path,)
    assert [refusal.subject for refusal in result.unread] == [gone.path]


def test_a_file_that_was_replaced_is_refused(tmp_path, local_files, remote_files, credentials):
    access = DataFileAccess(prefixes={BUCKET: credentials})
    (file, _) = list_files(local_files, remote_files)
    size, modified = access.read_version(remote_files[0])
    assert size == file.size
    same = analyze(tmp_path, (replace(file, modified=modified),), access)
    assert same.unread == ()
    replaced = analyze(tmp_path, (replace(file, modified=modified - 1000),), access)
    assert "replaced" in replaced.unread[0].reason


@pytest.mark.parametrize(
    ("location", "is_opened"),
    [
        (f"s3://{s3.BUCKET}/a", True),
        (f"s3a://{s3.BUCKET}/a", True),
        ("s3://another/a", False),
        (f"gs://{s3.BUCKET}/a", False),
        ("hdfs://name/a", False),
        ("/disk/a", True),
        ("file:/disk/a", True),
    ],
)
def test_python_opens_files_of_known_buckets_alone(location, is_opened):
    access = DataFileAccess(prefixes={BUCKET: Credentials({"access_key_id": "k", "secret_access_key": "s"})})
    file = DataFile(path="a", size=1, rows=1, format="parquet", open_location=location)
    assert (find_spark_only_reason(file, access) is None) == is_opened


def keys(name: str) -> Credentials:
    return Credentials({"access_key_id": name, "secret_access_key": "s"})


@pytest.mark.parametrize(
    ("location", "key"),
    [
        ("s3://lake/db/t/a", "of t"),
        ("s3a://lake/db/t/data/a", "of its data"),
        ("s3://lake/db/t2/a", "of the bucket"),
        ("s3://lake/a", "of the bucket"),
    ],
)
def test_a_file_is_opened_by_the_keys_of_its_longest_prefix(monkeypatch, location, key):
    prefixes = {"s3://lake": "of the bucket", "s3://lake/db/t": "of t", "s3://lake/db/t/data": "of its data"}
    access = DataFileAccess(prefixes={prefix: keys(name) for prefix, name in prefixes.items()})
    monkeypatch.setattr(data_file_access, "open_file_system", lambda _, used: (used.options["access_key_id"], "a"))
    assert access._open_location(location) == (key, "a")


def test_keys_of_prefixes_open_these_alone(monkeypatch):
    by_location = {"s3://lake": Credentials(), "s3://lake/db/t/": keys("t"), "s3://lake/data": keys("data")}
    prefixes = ["s3://lake/db/t/", "s3://lake/data"]
    monkeypatch.setattr(table_access, "find_table_credentials", lambda *arguments: by_location[arguments[-1]])
    monkeypatch.setattr(jvm_session, "list_storage_prefixes", lambda *_: prefixes)
    files = [DataFile(path="a", size=1, rows=1, format="parquet", open_location="s3://lake/data/a")]
    facts = SimpleNamespace(identity=TABLE, identifier="t", local=True, files=files)
    beside = find_data_file_access(None, facts, TaskStore("s3://lake/db/t/_metastore", keys("t")))
    assert beside.prefixes == {"s3://lake/db/t": keys("t"), "s3://lake/data": keys("data")}
    by_environment = find_data_file_access(None, facts, TaskStore("s3://lake/db/t/_metastore"))
    assert by_environment.prefixes.keys() == {"s3://lake", *beside.prefixes}


def test_files_of_a_catalog_that_signs_are_not_opened_by_keys_of_the_session(monkeypatch):
    def refuse(*_):
        raise UnsupportedTable("t", "its catalog signs each request")

    monkeypatch.setattr(table_access, "find_table_credentials", refuse)
    monkeypatch.setattr(jvm_session, "list_storage_prefixes", lambda *_: [])
    files = [DataFile(path="a", size=1, rows=1, format="parquet", open_location="s3://lake/db/t/a")]
    facts = SimpleNamespace(identity=TABLE, identifier="t", local=True, files=files)
    access = find_data_file_access(None, facts, TaskStore("s3://lake/statistics/iceberg-1", keys("session")))
    assert not access.reaches("s3://lake/db/t/a")


def test_a_bare_path_is_not_always_local():
    file = DataFile(path="/a", size=1, rows=1, format="parquet")
    assert find_spark_only_reason(file, DataFileAccess(has_local_paths=False)) is not None


@pytest.mark.spark
def test_keys_of_the_settings_open_their_buckets(spark, tmp_path):
    locations = ["s3a://with-keys/t/a", "s3a://without/t/a", "hdfs://name/a", "file:/disk/a", "/disk/a"]
    files = [DataFile(path="a", size=1, rows=1, format="parquet", open_location=path) for path in locations]
    facts = SimpleNamespace(identity=replace(TABLE, format="parquet"), identifier="t", local=True, files=files)
    settings = {
        "fs.s3a.bucket.with-keys.access.key": s3.KEY,
        "fs.s3a.bucket.with-keys.secret.key": s3.SECRET,
        "fs.s3a.endpoint.region": "us-east-1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        beside = find_data_file_access(spark, facts, TaskStore("s3a://without/t/_metastore"))
        elsewhere = find_data_file_access(spark, facts, TaskStore(str(tmp_path)))
    finally:
        for key in settings:
            spark.conf.unset(key)
    assert set(beside.prefixes) == {"s3://with-keys", "s3://without"}
    assert set(elsewhere.prefixes) == {"s3://with-keys"}
    assert s3.SECRET not in repr(elsewhere)
