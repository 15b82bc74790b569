"""The settings of spark-defaults.conf, as Spark itself reads them."""

from __future__ import annotations

import pytest

from metastore.spark.session import read_spark_defaults

LINES = {
    "spark.master local[2]": ("spark.master", "local[2]"),
    "spark.a=b=c": ("spark.a", "b=c"),
    "spark.a = b": ("spark.a", "b"),
    "  spark.a\t b c ": ("spark.a", "b c"),
    "spark.a: b": ("spark.a", "b"),
    "spark.driver.extraJavaOptions -Da=1 -Db=/x": ("spark.driver.extraJavaOptions", "-Da=1 -Db=/x"),
    "spark.url jdbc:derby:;databaseName=/x;create=true": ("spark.url", "jdbc:derby:;databaseName=/x;create=true"),
    "# spark.a b": None,
    "": None,
    "spark.alone": None,
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_key_and_a_value(line, monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\nspark.last 1\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert read_spark_defaults() == dict(filter(None, [LINES[line], ("spark.last", "1")]))
