"""A data file that nothing can read is refused with its name and the cause; the others are analyzed."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import metastore
from formats.spoiled_files import (
    cut,
    garble_blocks,
    garble_first_page,
    garble_pages,
    garble_stripes,
    shorten_bounds,
    write_noise,
)
from lakes import FORMATS
from nightly import others_nightly
from planner.plans import conf

pytestmark = pytest.mark.spark

_numbers = itertools.count()
FILES = 4


@pytest.fixture
def table(spark, kind, tmp_path):
    """A table of four files with a hundred rows each."""
    name = kind.name.format(f"unreadable_{next(_numbers)}")
    kind.create(spark, name, tmp_path / "table", "id BIGINT, s STRING")
    for first in range(0, FILES * 100, 100):
        kind.append(spark, name, first, first + 100, row="id, CAST(id AS STRING) s")
    yield name
    kind.drop(spark, name)


def find_data_file(spark, kind, name, first: int) -> Path:
    """The data file whose least `id` is this one."""
    location = Path("/" + kind.location(spark, name).removeprefix("file:").lstrip("/"))
    files = [file for file in location.rglob("*.parquet") if not {"_delta_log", ".hoodie"} & set(file.parts)]
    (data_file,) = [file for file in files if least_id(file) == first]
    return data_file


def least_id(file: Path) -> int:
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return next(column.statistics.min for column in columns if column.statistics.physical_type == "INT64")


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(cut, marks=pytest.mark.slow),
        write_noise,
        pytest.param(garble_first_page, marks=pytest.mark.slow),
        shorten_bounds,
    ],
)
def test_a_spoiled_file_is_refused_by_name(spark, kind, table, spoil):
    spoiled = find_data_file(spark, kind, table, 100)
    spoil(spoiled)
    spoiled.with_name(f".{spoiled.name}.crc").unlink(missing_ok=True)
    kind.settle(spark, table)
    check_refused(spark, table, spoiled)


def check_refused(spark, table, spoiled: Path) -> None:
    """ANALYZE refuses this file, each time, and reads all others."""
    report = metastore.analyze(spark, table, progress=False)
    ((subject, reason),) = [(refusal.subject, refusal.reason) for refusal in report.refused]
    assert spoiled.name in subject
    assert " cannot read " in reason or " can read it: " in reason
    assert ": " in reason
    assert "@" not in reason, "the name of a Java object"
    assert ".." not in reason
    assert ". :" not in reason
    assert report.files_read == FILES - 1
    (row,) = spark.sql(f"SELECT min FROM metastore.summary('{table}') WHERE column_name = 'id'").collect()
    assert row.min == "0"
    assert {refused.subject for refused in metastore.analyze(spark, table, progress=False).refused} == {subject}


APART = "viewfs://apart"
"""Local files behind another scheme, which Python does not open."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """The folder of files that only Spark reads: a catalog stays in its session, with its folder."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture
def apart(spark, lake):
    """Files that only Spark reads, below `/lake`."""
    mount = {"fs.viewfs.mounttable.apart.link./lake": lake.as_uri()}
    catalog = "spark.sql.catalog.apart"
    settings = {
        **mount,
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": f"{APART}/lake",
        **{f"{catalog}.hadoop.{key}": value for key, value in mount.items()},
        "spark.metastore.store": str(lake / "stores"),
    }
    with conf(spark, **{key.replace(".", "__"): value for key, value in settings.items()}):
        yield lake


def make_iceberg(spark, name: str, file_format: str) -> str:
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, s STRING) USING iceberg "
        f"TBLPROPERTIES ('write.format.default' = '{file_format}', 'write.metadata.metrics.default' = 'none')"
    )
    for first in range(0, FILES * 100, 100):
        spark.sql(f"INSERT INTO {name} SELECT id, CAST(id AS STRING) FROM range({first}, {first + 100}, 1, 1)")
    return name


def make_directory(spark, name: str) -> str:
    for first in range(0, FILES * 100, 100):
        rows = spark.range(first, first + 100, 1, 1).selectExpr("id", "CAST(id AS STRING) s")
        rows.write.mode("append").parquet(f"{APART}/lake/{name}")
    return f"parquet.`{APART}/lake/{name}`"


READ_BY_SPARK = {
    "avro": (lambda spark: make_iceberg(spark, f"apart.db.avro_{next(_numbers)}", "avro"), garble_blocks),
    "orc": (lambda spark: make_iceberg(spark, f"apart.db.orc_{next(_numbers)}", "orc"), garble_stripes),
    "parquet": (lambda spark: make_iceberg(spark, f"apart.db.parquet_{next(_numbers)}", "parquet"), garble_pages),
    "directory": (lambda spark: make_directory(spark, f"directory_{next(_numbers)}"), garble_pages),
}


def file_of(spark, table: str, row: int, folder: Path) -> Path:
    location = "_metadata.file_path" if table.startswith("parquet.") else "_file"
    (path,) = spark.sql(f"SELECT DISTINCT {location} FROM {table} WHERE id = {row}").first()
    return folder / path.partition(f"{APART}/lake/")[2]


@pytest.mark.skipif("iceberg" not in FORMATS, reason="its tables have such files")
@pytest.mark.parametrize("made", others_nightly(READ_BY_SPARK))
def test_a_file_that_only_spark_reads_is_refused_if_its_middle_is_garbled(spark, apart, made):
    make, garble = READ_BY_SPARK[made]
    table = make(spark)
    spoiled = file_of(spark, table, 100, apart)
    garble(spoiled)
    spoiled.with_name(f".{spoiled.name}.crc").unlink(missing_ok=True)
    if made == "directory":
        for file in spoiled.parent.glob("*.parquet"):
            os.utime(file, (time.time() - 3600,) * 2)
    check_refused(spark, table, spoiled)


@pytest.mark.skipif("iceberg" not in FORMATS, reason="its tables have such files")
def test_several_of_them_are_refused_beside_files_that_python_reads(spark, apart):
    table = make_iceberg(spark, f"apart.db.several_{next(_numbers)}", "orc")
    garbled = [file_of(spark, table, row, apart) for row in (0, 300)]
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = 'avro')")
    spark.sql(f"INSERT INTO {table} SELECT id, 'x' FROM range(400, 500, 1, 1)")
    for file in garbled:
        garble_stripes(file)
        file.with_name(f".{file.name}.crc").unlink()
    report = metastore.analyze(spark, table, progress=False)
    assert sorted(Path(refusal.subject).name for refusal in report.refused) == sorted(file.name for file in garbled)
    assert report.files_read == FILES + 1 - len(garbled)
    (row,) = spark.sql(f"SELECT min, max FROM metastore.summary('{table}') WHERE column_name = 'id'").collect()
    assert (row.min, row.max) == ("100", "499")
