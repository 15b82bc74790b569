"""User-defined statistics on a real table: computed, merged, shown, computed again, and failing alone."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import metastore

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


class Elsewhere:
    """A function of a module that workers do not have."""

    def __reduce__(self):
        return importlib.import_module, ("no_such_module",)

    def __call__(self, values):
        return len(values)


def failures(report):
    refusals_by_subject = {refusal.subject: refusal.reason for refusal in report.refused}
    assert refusals_by_subject.pop("tags")  # a list has counts only
    return refusals_by_subject


def counting(version=1):
    return metastore.statistic("seen", version=version, merge=sum)(lambda values, v=version: len(values) * v)


@pytest.fixture
def filled(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING, tags ARRAY<INT>)")
    for start in (0, 100):
        spark.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, IF(id % 4 = 0, ' ', CAST(id AS STRING)), NULL "
            f"FROM range({start}, {start + 100})"
        )
    return table


def opened(warehouse, table, **at):
    rows = metastore.open(f"{warehouse}/{table.removeprefix('ice.').replace('.', '/')}").summary(**at)
    return {row["column_name"]: row for row in rows}


def analyzed(spark, table, *statistics, **more):
    return metastore.analyze(spark, table, statistics=statistics, progress=False, **more)


def test_the_page_works_as_it_is_written(spark, filled, warehouse, capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = "\n".join(blocks).replace("ice.db.notes", filled)
    scope = {"__name__": "__main__", "spark": spark}
    exec(compile(code, str(PAGE), "exec"), scope)  # noqa: S102 - our own page
    assert failures(scope["report"]) == {}
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in printed] == ["id", "name", "tags"]
    rows = opened(warehouse, filled)
    assert rows["name"]["blank"] == 50
    assert rows["id"]["blank"] is None
    assert rows["id"]["entropy"] is None  # no merge, two files
    paths = [row["path"] for row in metastore.files(spark, filled)]
    of_file = metastore.summary(spark, filled, file=paths[0]).column("id")
    assert of_file["entropy"] == pytest.approx(6.6438562)
    assert opened(warehouse, filled, file=paths[0])["id"]["entropy"] == pytest.approx(6.6438562)


def test_all_ways_to_ask_show_them(spark, filled, warehouse):
    analyzed(spark, filled, counting())
    sql = spark.sql(f"SELECT column_name, user_defined['seen'] FROM metastore.summary('{filled}')").collect()
    assert [tuple(row) for row in sql] == [("id", "200"), ("name", "200"), ("tags", None)]
    assert metastore.summary(spark, filled).column("id")["seen"] == 200
    location = f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    frame = spark.read.format("metastore").load(location)
    assert [row.seen for row in frame.select("seen").collect()] == [200, 200, None]
    named = spark.read.format("metastore").load(filled).select("user_defined").collect()
    assert named[0].user_defined == {"seen": "200"}


def test_only_what_lacks_it_is_read(spark, filled, warehouse):
    assert analyzed(spark, filled).files_read == 2
    assert analyzed(spark, filled, counting()).files_read == 2
    assert not analyzed(spark, filled, counting()).committed
    spark.sql(f"INSERT INTO {filled} VALUES (1, 'a', NULL)")
    assert analyzed(spark, filled, counting()).files_read == 1
    assert opened(warehouse, filled)["id"]["seen"] == 201
    assert analyzed(spark, filled, counting(2)).files_read == 3
    assert opened(warehouse, filled)["id"]["seen"] == 402
    assert not analyzed(spark, filled, counting(2)).committed
    store = metastore.open(f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}")._table.discovery
    assert store.manifest.settings["statistics"] == {"seen": 2}
    assert {statistic for block in store.manifest.blocks for statistic in block.statistics.items()} == {("seen", 2)}


def test_a_table_has_no_value_while_a_file_lacks_it(spark, filled, warehouse):
    analyzed(spark, filled, counting())
    spark.sql(f"INSERT INTO {filled} VALUES (1, 'a', NULL)")
    assert analyzed(spark, filled).files_read == 1
    assert opened(warehouse, filled)["id"]["seen"] is None
    assert analyzed(spark, filled, counting()).files_read == 1
    assert opened(warehouse, filled)["id"]["seen"] == 201


def test_a_failing_one_fails_alone_and_says_so(spark, filled, warehouse):
    bad = metastore.statistic("bad")(lambda _: 1 // 0)
    unknown = metastore.statistic("far")(Elsewhere())
    report = analyzed(spark, filled, bad, unknown, counting())
    assert report.committed
    messages = failures(report)
    assert messages["statistic bad(id)"].startswith("ZeroDivisionError")
    assert messages["statistic far"].startswith("a worker cannot load it: ModuleNotFoundError")
    assert opened(warehouse, filled)["id"]["seen"] == 200
    again = analyzed(spark, filled, bad, counting())
    assert not again.committed
    fixed = metastore.statistic("bad", version=2, merge=max)(lambda _: 7)
    assert analyzed(spark, filled, fixed, counting()).refused[1:] == ()
    assert opened(warehouse, filled)["id"]["bad"] == 7


def test_a_merge_that_fails_is_told(spark, filled, warehouse):
    bad = metastore.statistic("bad", merge=lambda _: 1 // 0)(len)
    report = analyzed(spark, filled, bad)
    assert failures(report).keys() == {"statistic bad(id)", "statistic bad(name)"}
    assert opened(warehouse, filled)["id"]["bad"] is None


def test_installed_ones_are_part_of_every_analyze(spark, filled, warehouse, monkeypatch):
    counter = counting()

    def broken():
        raise ImportError("no such module")

    entries = [
        SimpleNamespace(name="seen", value="a:b", load=lambda: counter),
        SimpleNamespace(name="broken", value="c:d", load=broken),
        SimpleNamespace(name="none", value="e:f", load=lambda: 1),
    ]
    monkeypatch.setattr("metastore.statistics.entry_points", lambda **_: entries)
    report = analyzed(spark, filled)
    assert failures(report).keys() == {"statistic broken", "statistic none"}
    assert opened(warehouse, filled)["id"]["seen"] == 200
