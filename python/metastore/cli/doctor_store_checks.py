"""What `metastore doctor` looks at of statistics: whether they can be written, and whose they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import configuration
from metastore.adapters.descriptors import FORMAT_NAMES, describe_format
from metastore.cli.doctor_checks import BROKEN, OK, WARNING, CheckResult
from metastore.cli.shell_hints import phrase_hint, write_analyze
from metastore.errors import MetastoreError, StoreNotReadable
from metastore.reading.discovery import discover
from metastore.reading.folder import Folder
from metastore.reading.table_answers import Statistics
from metastore.spark.session import read_spark_defaults
from metastore.store import Store
from metastore.store.credentials import find_credentials
from metastore.store.location import default_store_uri, local_path, needs_hadoop
from metastore.store.retention import is_leftover

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.answers import Answer

_PROPERTIES = "table properties"


def check_store(location: str | None) -> CheckResult:
    """The place of statistics can be read and written; nothing is made to find that out."""
    try:
        root = configuration.get("spark.metastore.store")
    except MetastoreError:  # the check of the settings says why
        return CheckResult("store", WARNING, "not looked at, for the settings cannot be read")
    try:
        if root is None and location is None:
            return CheckResult("store", OK, "beside each table; metastore doctor <table location> tries one")
        where = root or default_store_uri(str(location))
        if needs_hadoop(where):
            return CheckResult("store", OK, f"{where} is not tried: only Spark reaches it")
        if location is not None and not Folder(location).exists():
            return CheckResult("store", BROKEN, f"there is nothing at {location}", "Check the address.")
        hadoop = {key.removeprefix("spark.hadoop."): value for key, value in read_spark_defaults().items()}
        Store.open(where, access=find_credentials(where, hadoop.get)).read()
    except MetastoreError as error:
        return CheckResult("store", BROKEN, error.message, error.hint or "Check the address and the permissions.")
    return _writable(where)


def _writable(where: str) -> CheckResult:
    path = local_path(where)
    if path is None:
        return CheckResult(
            "store", OK, f"{where} can be read; ANALYZE tries, before all else, whether it can be written"
        )
    place = next(one for one in (Path(path), *Path(path).absolute().parents) if one.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        return CheckResult("store", BROKEN, f"{where} cannot be written: {place} is not writable", f"chmod u+w {place}")
    return CheckResult("store", OK, f"{where} can be read and written")


def check_statistics(location: str) -> CheckResult:
    """The statistics of a location are of the table that lies there now, and no writer has left anything behind."""
    if needs_hadoop(location):
        return CheckResult("statistics", OK, f"{location} is not looked at: only Spark reaches it")
    try:
        place = discover(location)
        snapshots = Statistics(place).snapshots()
        left = [path for path in place.store.list_entries() if is_leftover(path)] if place.store else []
    except StoreNotReadable as error:  # with credentials of Spark it may be
        fix = error.hint or "Check the address, and the credentials of this shell: a location is read without Spark's."
        return CheckResult("statistics", WARNING, error.message, fix)
    except MetastoreError as error:
        return CheckResult("statistics", BROKEN, error.message, phrase_hint(error))
    found = _currency(snapshots) if snapshots else CheckResult("statistics", OK, "none so far: ANALYZE makes them")
    if found.state != OK or not left:
        return found
    fix = f"If none is at work, they go a week later with: metastore gc {location} --delete"
    return CheckResult("statistics", WARNING, f"{len(left)} files that a writer needs for a moment: {left[0]}", fix)


def check_table_properties(location: str) -> CheckResult:
    """Table properties that begin with `metastore.` exist and have values that they can have."""
    if needs_hadoop(location):
        return CheckResult(_PROPERTIES, OK, f"{location} is not looked at: only Spark reaches it")
    try:
        properties = _read_properties(location)
    except MetastoreError as error:
        return CheckResult(_PROPERTIES, WARNING, f"not looked at: {error.message}", error.hint)
    if properties is None:
        return CheckResult(_PROPERTIES, OK, "only its catalog knows them")
    return _judge_properties(properties)


def _judge_properties(properties: Mapping[str, str]) -> CheckResult:
    problems = configuration.find_wrong_properties(properties)
    if not problems:
        ours = sorted(filter(configuration.is_property_name, properties))
        detail = ", ".join(f"{name}={properties[name]}" for name in ours)
        return CheckResult(_PROPERTIES, OK, detail or "none of the Metastore's is set")
    detail = "; ".join(f"{name}: {problems[name]}" for name in sorted(problems))
    names = ", ".join(f"'{name}'" for name in sorted(problems))
    fix = f"Set what is meant, and remove the other: ALTER TABLE ... UNSET TBLPROPERTIES ({names})"
    return CheckResult(_PROPERTIES, WARNING, detail, fix)


def _read_properties(location: str) -> Mapping[str, str] | None:
    """Read the table properties from the metadata at a location, or None where there is none.

    A Delta table that is written as Iceberg, too (UniForm), has metadata of both formats.
    """
    folder = Folder(location)
    by_format = [describe_format(name).read_properties(folder) for name in FORMAT_NAMES]
    readable = [properties for properties in by_format if properties is not None]
    if not readable:
        return None
    return {name: value for properties in readable for name, value in properties.items()}


def _currency(snapshots: Answer) -> CheckResult:
    """Whether they tell of the table's snapshot and of all its data files."""
    current = next((one for one in snapshots if one["current"]), None)
    fix = write_analyze(snapshots.subject)
    if current is None and snapshots[-1]["current"] is None:
        return CheckResult("statistics", OK, "only its catalog knows whether the table has moved on")
    if current is None:
        return CheckResult("statistics", WARNING, f"the table has moved on since {snapshots[-1]['analyzed_at']}", fix)
    if current["files"] < current["files_total"]:
        detail = f"{current['files']} of {current['files_total']} data files are analyzed"
        return CheckResult("statistics", WARNING, detail, fix)
    return CheckResult("statistics", OK, f"of the current snapshot, all {current['files']} data files")
