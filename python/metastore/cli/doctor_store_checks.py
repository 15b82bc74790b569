"""Checks of `metastore doctor` about statistics: whether they can be written, and are of the table as it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore import configuration
from metastore.adapters.descriptors import FORMAT_NAMES, describe_format
from metastore.cli.doctor_checks import BROKEN, OK, WARNING, CheckResult
from metastore.cli.shell_hints import phrase_hint, write_analyze
from metastore.errors import MetastoreError, StoreNotReadable, UnsupportedTable
from metastore.reading.discovery import discover
from metastore.reading.table_answers import Statistics
from metastore.spark.session import read_spark_defaults
from metastore.store import Store
from metastore.store.credentials import find_credentials
from metastore.store.folder import Folder
from metastore.store.location import default_store_uri, local_path, needs_hadoop
from metastore.store.retention import is_leftover

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.answers import Answer
    from metastore.reading.discovery import Discovery

_PROPERTIES = "table properties"


def check_location(location: str | None) -> list[CheckResult]:
    """Check the store, and the statistics and properties of a table if there is one to look at."""
    store = check_store(location)
    if location is None or store.state != OK:
        return [store]
    return [store, check_statistics(location), check_table_properties(location)]


def check_store(location: str | None) -> CheckResult:
    """Check that statistics can be read and written, without making anything."""
    try:
        root = configuration.get("spark.metastore.store")
    except MetastoreError:  # the check of the settings says why
        return CheckResult("store", WARNING, "not looked at, for the settings cannot be read")
    if root is None and location is None:
        return CheckResult("store", OK, "beside each table; metastore doctor <table location> tries one")
    try:
        return _try_store(root or default_store_uri(str(location)), location)
    except MetastoreError as error:
        return CheckResult("store", BROKEN, error.message, error.hint or "Check the address and the permissions.")


def _try_store(uri: str, location: str | None) -> CheckResult:
    if needs_hadoop(uri):
        return CheckResult("store", OK, f"{uri} is not tried: only Spark reaches it")
    if location is not None and not Folder(location).exists():
        return CheckResult("store", BROKEN, f"there is nothing at {location}", "Check the address.")
    try:
        _read_store(uri)
    except UnsupportedTable:
        return CheckResult("store", OK, f"{uri} is not tried: only Spark has its keys")
    return _check_writing(uri)


def _read_store(uri: str) -> None:
    hadoop_settings = {key.removeprefix("spark.hadoop."): value for key, value in read_spark_defaults().items()}
    Store.open(uri, access=find_credentials(uri, hadoop_settings.get)).read()


def _check_writing(uri: str) -> CheckResult:
    path = local_path(uri)
    if path is None:
        detail = f"{uri} can be read; ANALYZE tries, before all else, whether it can be written"
        return CheckResult("store", OK, detail)
    folder = _nearest_existing(Path(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        detail = f"{uri} cannot be written: {folder} is not writable"
        return CheckResult("store", BROKEN, detail, f"chmod u+w {folder}")
    return CheckResult("store", OK, f"{uri} can be read and written")


def _nearest_existing(path: Path) -> Path:
    folders = (path, *path.absolute().parents)
    return next(filter(Path.exists, folders))


def check_statistics(location: str) -> CheckResult:
    """Check that statistics are of the table as it is now, and that no writer has left files behind."""
    if needs_hadoop(location):
        return CheckResult("statistics", OK, f"{location} is not looked at: only Spark reaches it")
    try:
        return _check_discovered(location, discover(location))
    except StoreNotReadable as error:  # with credentials of Spark it may be
        fix = error.hint or "Check the address, and the credentials of this shell: a location is read without Spark's."
        return CheckResult("statistics", WARNING, error.message, fix)
    except MetastoreError as error:
        return CheckResult("statistics", BROKEN, error.message, phrase_hint(error))


def _check_discovered(location: str, discovery: Discovery) -> CheckResult:
    result = _check_currency(Statistics(discovery).snapshots())
    leftovers = _list_leftovers(discovery)
    if result.state != OK or not leftovers:
        return result
    detail = f"{len(leftovers)} files that a writer needs for a moment: {leftovers[0]}"
    fix = f"If none is at work, they go a week later with: metastore gc {location} --delete"
    return CheckResult("statistics", WARNING, detail, fix)


def _list_leftovers(discovery: Discovery) -> list[str]:
    if not discovery.store:
        return []
    return list(filter(is_leftover, discovery.store.list_entries()))


def check_table_properties(location: str) -> CheckResult:
    """Check that table properties that begin with `metastore.` exist and have valid values."""
    if needs_hadoop(location):
        return CheckResult(_PROPERTIES, OK, f"{location} is not looked at: only Spark reaches it")
    try:
        properties = _read_properties(location)
    except MetastoreError as error:
        return CheckResult(_PROPERTIES, WARNING, f"not looked at: {error.message}", error.hint)
    if properties is None:
        return CheckResult(_PROPERTIES, OK, "only its catalog knows them")
    return _check_properties(properties)


def _check_properties(properties: Mapping[str, str]) -> CheckResult:
    problems = configuration.find_wrong_properties(properties)
    if problems:
        quoted_names = ", ".join(f"'{name}'" for name in sorted(problems))
        fix = f"Set what is meant, and remove the other: ALTER TABLE ... UNSET TBLPROPERTIES ({quoted_names})"
        return CheckResult(_PROPERTIES, WARNING, "; ".join(_write_sorted(problems, ": ")), fix)
    return CheckResult(_PROPERTIES, OK, _describe_properties(properties))


def _describe_properties(properties: Mapping[str, str]) -> str:
    ours = {name: value for name, value in properties.items() if configuration.is_property_name(name)}
    return ", ".join(_write_sorted(ours, "=")) or "none of the Metastore's is set"


def _write_sorted(texts: Mapping[str, str], separator: str) -> list[str]:
    """Names and their texts in the order of the names."""
    return [name + separator + text for name, text in sorted(texts.items())]


def _read_properties(location: str) -> Mapping[str, str] | None:
    """Read the table properties from the metadata at a location, or None where there is none.

    A Delta table that is written as Iceberg, too (UniForm), has metadata of both formats.
    """
    folder = Folder(location)
    has_metadata = False
    properties: dict[str, str] = {}
    for name in FORMAT_NAMES:
        properties_of_format = describe_format(name).read_properties(folder)
        if properties_of_format is not None:
            has_metadata = True
            properties |= properties_of_format
    return properties if has_metadata else None


def _check_currency(snapshots: Answer) -> CheckResult:
    """Check that statistics are of the table's snapshot and of all its data files."""
    if not snapshots:
        return CheckResult("statistics", OK, "none so far: ANALYZE makes them")
    fix = write_analyze(snapshots.subject)
    current = [snapshot for snapshot in snapshots if snapshot["current"]]
    if not current:
        return _check_newest(snapshots[-1], fix)
    files = current[0]["files"]
    files_total = current[0]["files_total"]
    if files < files_total:
        return CheckResult("statistics", WARNING, f"{files} of {files_total} data files are analyzed", fix)
    return CheckResult("statistics", OK, f"of the current snapshot, all {files} data files")


def _check_newest(newest: Mapping[str, Any], fix: str) -> CheckResult:
    """Describe statistics of which none is known to be of the current snapshot."""
    if newest["current"] is None:
        return CheckResult("statistics", OK, "only its catalog knows whether the table has moved on")
    return CheckResult("statistics", WARNING, f"the table has moved on since {newest['analyzed_at']}", fix)
