"""Directories of Parquet files as any engine may have written them, with statistics of what Spark reads in them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metastore.format.manifest import TableIdentity
from metastore.format.table_column import LONG_DECIMAL_DIGITS, Column, decimal_type, encoding_of
from metastore.format.value_rendering import decimal_to_bytes
from oracle import details, tables
from oracle.columns import BYTES, INTEGER_BITS, SCALARS, WIDE, is_nan
from oracle.data import random_design, write_files
from planner import plans, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.columns import Leaf
    from oracle.tables import Subject

KINDS = ("parquet", "parquet int96", "parquet legacy", "parquet partitioned")
ODD_FOLDER = "odd na.me+1%"
ODD_PARTITIONS = ("a b", "a/b=c", "a%2Fb", "日本", "null", "x.y", "1", None, "'q'", "a:b")
PARTITION = "p q.r"
LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}


def create(spark: SparkSession, kind: str, files: int, scratch: Path, rng: Random) -> Subject:
    """Makes a directory of about `files` data files, and its statistics.

    Args:
        spark: the session.
        kind: one of KINDS: by pyarrow; the same with INT96; by Spark in the old calendar; by Spark in partitions.
        files: data files to write.
        scratch: where the directory is made.
        rng: decides everything random.
    """
    design, folder = random_design(rng, SCALARS), scratch / ODD_FOLDER
    if kind in {"parquet", "parquet int96"}:
        write_files(design, files, folder, rng, int96=kind == "parquet int96")
    else:
        write_files(design, files, scratch / "before", rng)
        _rewrite(spark, kind, scratch / "before", folder, rng)
    observed = tables.observe(
        spark, kind, f"parquet.`{folder}`", "input_file_name()", root=folder, without=(PARTITION,)
    )
    drawn = {
        f: {leaf: details.draw(leaf, v, rng) for leaf, v in values.items()} for f, values in observed.values.items()
    }
    statistics(observed, drawn).write()
    zones = {
        file: {
            leaf: details.known_values(zone, observed.values[file][leaf], drawn[file][leaf])
            for leaf, zone in of_file.items()
        }
        for file, of_file in observed.zones.items()
    }
    return replace(observed, zones=zones)


def _rewrite(spark: SparkSession, kind: str, source: Path, folder: Path, rng: Random) -> None:
    frame = tables.one_file_a_task(spark, source)
    if kind == "parquet legacy":
        physical = rng.choice(["INT96", "TIMESTAMP_MICROS"])
        with plans.conf(spark, **LEGACY, **{"spark.sql.parquet.outputTimestampType": physical}):
            frame.write.parquet(str(folder))
        return
    values = ", ".join("NULL" if p is None else f"'{p.replace(chr(39), chr(92) + chr(39))}'" for p in ODD_PARTITIONS)
    of_row = f"element_at(array({values}), 1 + file_no % {len(ODD_PARTITIONS)})"
    frame.selectExpr("*", f"{of_row} AS `{PARTITION}`").write.partitionBy(PARTITION).parquet(str(folder))


def statistics(subject: Subject, drawn: dict[str, dict[Leaf, details.Detail]] | None = None) -> written.Written:
    """Returns what is true of the columns of a directory's files, and of single values what was drawn."""
    folder = subject.root
    assert folder is not None
    identity = TableIdentity("parquet", identifier(folder), f"file:{folder}", str(folder))
    files = []
    for path, name in subject.paths().items():
        stat = (folder / path).stat()
        values = subject.values[name]
        rows = len(next(iter(values.values())))
        columns = {column(leaf): summary(leaf, leaf_values) for leaf, leaf_values in values.items()}
        singles = {
            column(leaf): single_values(leaf, drawn_detail, values[leaf])
            for leaf, drawn_detail in (drawn or {}).get(name, {}).items()
        }
        files.append(
            written.DataFile(
                path=path,
                size=stat.st_size,
                rows=rows,
                modified=int(stat.st_mtime * 1000),
                columns=columns,
                values=singles,
            )
        )
    return written.Written(identity, files)


def identifier(folder: Path) -> str:
    """Returns what stands for a uuid of a directory."""
    return hashlib.sha256(f"file:{folder}".encode()).hexdigest()


def column(leaf: Leaf) -> Column:
    """A column of a directory's files, as statistics know it."""
    key = json.dumps(list(leaf.path), ensure_ascii=False, separators=(",", ":"))
    return Column(key=key, path=leaf.path, type=leaf.type, encoding=encoding_of(leaf.type))


def summary(leaf: Leaf, values: Sequence[Any]) -> dict[str, Any]:
    """Returns the true statistics of a column in a file with these values."""
    present = [v for v in values if v is not None]
    ordinary = [v for v in present if not is_nan(v)]
    row = {"rows": len(values), "nulls": len(values) - len(present), "nans": len(present) - len(ordinary)}
    row |= {"distinct": len(set(ordinary)) + (len(present) > len(ordinary)), "distinct_error": 0.0}
    if ordinary:
        row |= written.bounds(_stored(leaf.type, min(ordinary)), _stored(leaf.type, max(ordinary)))
    if present and (leaf.type in INTEGER_BITS or decimal_type(leaf.type)):
        total = sum(unscaled(leaf.type, v) for v in present)
        row |= {"sum_exact": total if abs(total) < 10**38 else None}
    if present and leaf.type in BYTES:
        row |= {"avg_len": sum(map(len, present)) / len(present), "max_len": max(map(len, present))}
    return row


def single_values(leaf: Leaf, detail: details.Detail, values: Sequence[Any]) -> written.Values:
    """Returns the stored single values, with the frequency of each."""
    counts = Counter(_same(_stored(leaf.type, v)) for v in values if v is not None)
    listed = [_stored(leaf.type, v) for v in detail.listed]
    filtered = None if detail.filtered is None else [_stored(leaf.type, v) for v in detail.filtered]
    return written.Values(detail.kind, [(v, counts[_same(v)]) for v in listed], filtered)


def _same(value: Any) -> Any:
    """NaN as something that is equal to itself."""
    return "NaN" if is_nan(value) else value


def unscaled(kind: str, value: Any) -> int:
    """An integer as it is, and a decimal without its point."""
    decimal = decimal_type(kind)
    return int(WIDE.scaleb(value, decimal[1]) if decimal else value)


def _stored(kind: str, value: Any) -> Any:
    if decimal := decimal_type(kind):
        number = unscaled(kind, value)
        return number if decimal[0] <= LONG_DECIMAL_DIGITS else decimal_to_bytes(number)
    if isinstance(value, bool | float):
        return value + 0.0 if isinstance(value, float) else int(value)
    return bytes(value) if kind in BYTES else value
