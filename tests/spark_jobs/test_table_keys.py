"""Keys of object stores that end: when new ones are asked for, and how much work begins with the same keys."""

from __future__ import annotations

import math
import time

import pytest

from metastore.pipeline.compute import count_tasks_in_time
from metastore.spark_jobs.table_access import _RenewedKeys
from metastore.store.credentials import Credentials
from metastore.store.data_file_access import DataFileAccess


def make_keys(seconds: float) -> Credentials:
    return Credentials({"access_key_id": f"KEY{seconds}"}, expires=time.time() + seconds)


@pytest.mark.parametrize(("seconds", "is_renewed"), [(-1, True), (1, True), (300, True), (3600, False)])
def test_keys_from_a_cache_are_renewed_at_once_if_they_end_soon(seconds, is_renewed):
    new_keys = make_keys(3600)
    keys = _RenewedKeys(make_keys(seconds), lambda: new_keys).current
    renewed_keys = keys.renewed()
    assert renewed_keys == (new_keys if is_renewed else keys)
    assert (renewed_keys is keys) == (not is_renewed)


def test_keys_that_end_soon_anyway_are_asked_for_once_in_a_while():
    questions = []

    def find() -> Credentials:
        questions.append(time.monotonic())
        return make_keys(1)

    keys = _RenewedKeys(make_keys(1), find).current
    for _ in range(3):
        keys = keys.renewed()
    assert len(questions) == 1


def test_keys_without_an_end_are_never_renewed():
    keys = _RenewedKeys(Credentials({"access_key_id": "KEY"}), lambda: pytest.fail("asked")).current
    assert keys.renewed() is keys


def test_the_first_of_several_keys_that_ends():
    keys = {"s3://a": make_keys(100), "s3://a/b": make_keys(50), "s3://c": Credentials({"access_key_id": "KEY"})}
    assert DataFileAccess(prefixes=keys).renew_keys() == keys["s3://a/b"].expires
    assert DataFileAccess(prefixes={"s3://c": keys["s3://c"]}).renew_keys() == math.inf
    assert DataFileAccess().renew_keys() == math.inf


@pytest.mark.parametrize(("seconds", "tasks"), [(3600, 36), (900, 8), (399, 2), (90, 2), (0, 2), (-5, 2)])
def test_a_job_is_short_enough_for_its_keys(seconds, tasks):
    assert count_tasks_in_time(seconds, cores=2) == tasks
