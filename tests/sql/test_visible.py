"""Spark's answers about a hostile table: our texts show what stands in it, rows contain it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from pyspark.errors import AnalysisException

import metastore
from metastore import jvm_session
from metastore.visible_text import make_visible

pytestmark = pytest.mark.spark

ATTACK = "\x1b]0;owned\x07\x9b31m\u202egnp.exe\u2069\u200b\x7f\n[red]x"
COLUMN = f"c{ATTACK}"
TABLE = "ice.db.hostile"


@pytest.fixture(scope="module")
def hostile(spark):
    spark.sql(f"CREATE TABLE {TABLE} (`{COLUMN}` STRING, id INT) USING iceberg")
    spark.createDataFrame([(f"v{i}{ATTACK}", i) for i in range(5)], f"`{COLUMN}` STRING, id INT").coalesce(1).writeTo(
        TABLE
    ).append()
    yield TABLE
    spark.sql(f"DROP TABLE {TABLE} PURGE")


def acts(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def test_both_languages_show_the_same(spark):
    visible_text = jvm_session.find_shim_package(spark).reason.VisibleText
    texts = [
        ATTACK,
        "São Paulo, 東京　都, a\u00a0b, 👍🏽",
        "\u2028\u2029\xad\u034f\u3164\ufeff\U000e0041\ue000\t\r",
        "",
    ]
    texts += [f"{chr(point)}x" for point in [*range(0x100), *range(0x2000, 0x2070)]]
    for text in texts:
        assert visible_text.apply(text) == make_visible(text)


def test_texts_show_it_and_rows_hold_it(spark, hostile, capfd):
    metastore.analyze(spark, hostile)
    assert not acts(capfd.readouterr().err) - {"\n", "\r"}
    rows = spark.sql(f"SELECT column_name, min FROM metastore.summary('{hostile}') ORDER BY 1").collect()
    assert {row.column_name for row in rows} == {f"`{COLUMN}`", "id"}
    frequencies = metastore.frequencies(spark, hostile, f"`{COLUMN}`")
    assert {row["value"] for row in frequencies} == {f"v{i}{ATTACK}" for i in range(5)}
    assert not acts(repr(frequencies)) - {"\n"}
    explained = spark.sql(f"EXPLAIN SELECT id FROM {hostile} WHERE `{COLUMN}` = 'w'").first()[0]
    (label,) = re.findall(r"\[Metastore: [^\]]*\]", explained)
    assert not acts(label)
    decisions = metastore.explain(spark, f"SELECT id FROM {hostile} WHERE `{COLUMN}` = 'w'")
    assert not acts(repr(decisions)) - {"\n"}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM metastore.frequencies('{table}', 'no {attack}')",
        "SELECT * FROM metastore.summary('{table}', file => 'no {attack}')",
        "SELECT * FROM metastore.summary('{table}', at => 'no {attack}')",
        "ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS `no {attack}`",
        "ANALYZE TABLE {table} PARTITION (`no {attack}` = 1) COMPUTE STATISTICS",
    ],
)
def test_errors_show_it(spark, hostile, statement):
    with pytest.raises(AnalysisException) as raised:
        spark.sql(statement.format(table=hostile, attack=ATTACK)).collect()
    message = str(raised.value).partition("\n\nJVM stacktrace")[0]
    assert message.startswith("[METASTORE_")
    assert not acts(message)
