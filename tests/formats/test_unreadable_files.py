"""A data file that nothing can read is refused with its name and the cause; the others are analyzed."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import metastore
from formats.spoiled_files import cut, garble_first_page, shorten_bounds, write_noise

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
