"""Tables whose keys only Hadoop's settings have: of a bucket, of a role whose keys end, of a Delta table's options.

The tables of the bucket are in a Hive metastore.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud import program
from cloud.rest_catalog import Guard, VendedKey
from cloud.sts_server import StsServer
from store import s3
from versions.environments import fetch_locked

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
CASES = ("bucket", "role", "options")
CATALOGS = {"bucket": "hive", "role": "hadoop"}
METASTORE = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.metastore.schema.verification": "false",
    "iceberg.engine.hive.lock-enabled": "false",
}
"""Settings of a Hive metastore inside the driver, whose database is in memory."""
SECONDS = 65.0
"""S3A asks for new keys a minute before the end."""
ROLE = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"


def make_options(key: str) -> dict[str, str]:
    """Make options with a key; Hadoop must not take the file system that it keeps for a bucket."""
    secret = f"planted/secret+of={key}"
    return {"fs.s3a.access.key": key, "fs.s3a.secret.key": secret, "fs.s3a.impl.disable.cache": "true"}


OPTIONS = {"s3a://options/keys": make_options("OPTIONKEY1"), "s3a://options/other": make_options("OPTIONKEY2")}


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    """A guard before a server with a bucket a case, whose keys it knows."""
    with s3.running() as behind, Guard(behind) as running:
        for name in CASES:
            s3.make_bucket(behind, name)
        running.keys["BUCKETKEY"] = VendedKey("bucket", math.inf)
        for path, options in OPTIONS.items():
            running.keys[options["fs.s3a.access.key"]] = VendedKey(path.removeprefix("s3a://"), math.inf)
        yield running


@pytest.fixture(scope="module")
def driver(guard, tmp_path_factory, spark_conf) -> dict[str, Any]:
    """The results of each case, and the texts that Spark wrote for people."""
    folder = tmp_path_factory.mktemp("driver")
    with ExitStack() as stack:
        sts = stack.enter_context(StsServer(guard, "role", SECONDS))
        tables: dict[str, dict[str, str | None]] = {
            name: {f"{name}.db.keys": None, f"{name}.db.other": None} for name in CASES[:2]
        }
        tables["options"] = {f"default.{path.rpartition('/')[2]}": path for path in OPTIONS}
        results = program.run(make_settings(spark_conf, guard, sts), tables, folder, OPTIONS)
        return {**results, "roles": sts.roles}


def make_settings(spark_conf: dict[str, str], guard: Guard, sts: StsServer) -> dict[str, str]:
    """Make the settings of Spark: of each bucket its own keys, of others none."""
    jars = map(str, fetch_locked(HERE / "hadoop-aws.lock"))
    # The setting for this, fs.s3a.assumed.role.sts.endpoint, needs AWS's bundle of 640 MB.
    service = f"-Daws.endpointUrlSts={sts.address} -Daws.region=us-east-1"
    s3a = {
        "endpoint": guard.address,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "bucket.bucket.access.key": "BUCKETKEY",
        "bucket.bucket.secret.key": "planted/secret+of=BUCKETKEY",
        "bucket.role.access.key": "BASEKEY",
        "bucket.role.secret.key": "planted/secret+of=BASEKEY",
        "bucket.role.aws.credentials.provider": ROLE,
        "assumed.role.arn": "arn:aws:iam::123456789012:role/reader",
        "assumed.role.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    settings = {
        **spark_conf,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{spark_conf['spark.driver.extraJavaOptions']} {service}",
        "spark.jars": ",".join([spark_conf["spark.jars"], *jars]),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
        **{f"spark.hadoop.{name}": value for name, value in METASTORE.items()},
    }
    for name, kind in CATALOGS.items():
        settings[f"spark.sql.catalog.{name}"] = "org.apache.iceberg.spark.SparkCatalog"
        settings[f"spark.sql.catalog.{name}.type"] = kind
        settings[f"spark.sql.catalog.{name}.warehouse"] = f"s3a://{name}/warehouse"
    return settings


@pytest.fixture(params=CASES)
def case(request) -> str:
    return request.param


@pytest.fixture
def results(driver, case) -> dict[str, Any]:
    return driver[case]


def test_analyze_reads_and_writes_by_these_keys(results):
    assert "there are no statistics" in results["before"]
    assert results["analyzed"] == [400, 4, []]
    assert results["other"] == [400, 4]
    assert (results["again"], results["without"], results["automatic"]) == (0, 0, 5)
    assert results["has_keys"]


def test_planning_and_functions_read_by_these_keys(results):
    assert results["label"].startswith("4 -> 1 files")
    assert results["rows"] == ["n6"]
    assert results["summary"][0] == {"min": "0", "max": "399", "count": 400}
    assert (results["files"], results["source"], results["verified"], results["garbage"]) == (4, 2, True, 0)


def test_commands_use_these_keys(driver):
    assert driver["files by command"] == 4


def test_the_options_of_a_delta_reader_are_enough(driver):
    for reader, files in zip(driver["readers"], (4, 5), strict=True):
        assert [label.partition(" files")[0] for label in reader["labels"]] == [f"{files} -> 1"] * 2
        assert reader["rows"] == ["n6", "n6"]


def test_keys_of_a_role_end_and_are_asked_for_again(driver):
    assert [driver[name]["ends"] for name in CASES] == [False, True, False]
    assert driver["roles"] > 1


def test_each_request_had_the_key_of_its_own_place(driver, guard):
    assert guard.refused == []


def test_nothing_of_a_key_is_shown_or_written(driver, guard, case):
    secrets = {"secret+of", "token-of", "BASEKEY", *guard.keys}
    assert not [secret for secret in secrets if secret in driver["texts"]]
    written = s3.read_all(f"http://{guard.behind}", case, "_metastore")
    assert len(written) > 10
    assert not [path for path, data in written.items() for secret in secrets if secret.encode() in data]
