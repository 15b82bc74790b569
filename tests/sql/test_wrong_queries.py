"""Functions that take a query, and names of views: what is told where they cannot be answered."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import AnalysisException

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("function", ["filtered_summary", "explain", "estimates"])
def test_of_a_wrong_query_spark_tells_in_one_line(spark, analyzed, function):
    with pytest.raises(AnalysisException, match=r"\[UNRESOLVED_COLUMN\.WITH_SUGGESTION\].*`id`") as caught:
        spark.sql(f"SELECT * FROM metastore.{function}('SELECT * FROM {analyzed} WHERE idd < 3')")
    assert "\n" not in str(caught.value).split("JVM stacktrace")[0].strip()


def test_of_a_view_it_is_said_what_can_be_asked(spark, analyzed):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sql_asked AS SELECT * FROM {analyzed}")
    with pytest.raises(AnalysisException, match="it is a view") as caught:
        spark.sql("SELECT * FROM metastore.summary('sql_asked')")
    (call,) = re.findall(r"metastore\.filtered_summary\(.*\)", str(caught.value))
    assert spark.sql(f"SELECT max(count) FROM {call}").first()[0] == 100
