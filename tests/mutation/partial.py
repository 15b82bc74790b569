"""Files whose bounds are known in part, and conditions of every kind that rules know: Spark says which rows match."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore.jvm_session import find_shim_package
from mutation import suites as of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from pyspark.sql import SparkSession

FILES, MOST_ROWS, AT_ONCE = 60, 3, 32
NULL, NAN = "NULL", "double('NaN')"
ASKED = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Of each column some values in the order of its bounds (`pools`); forms of conditions on one column and two of its
values (`compared`), and on two columns (`related`, of `pairs`); functions of a column, each with two values to compare
it with (`terms`), in `forms`; and other conditions."""
POOLS: dict[str, list[str]] = ASKED["pools"]
TYPES = dict(column.split(" ") for column in POOLS)


def suites(spark: SparkSession, rng: Random) -> Iterator[of.Suite]:
    """Yields the conditions as they are optimized, as they are written, and what is told of them."""
    files = [_rows(rng) for _ in range(FILES)]
    zones = [_zone(rows, rng) for rows in files]
    schema = ", ".join(POOLS)
    probe = find_shim_package(spark).pruning.PruningProbe.ofZones(spark._jsparkSession, schema, json.dumps(zones))
    spark.sql(
        " UNION ALL ".join(_select(number, row) for number, rows in enumerate(files) for row in rows)
    ).createOrReplaceTempView("partial")
    spark.sql("CACHE TABLE partial")
    conditions = _conditions()
    parts = [_truths(spark, conditions[start : start + AT_ONCE]) for start in range(0, len(conditions), AT_ONCE)]
    truths = {text: truth for part in parts for text, truth in part.items()}
    questions = list(truths)

    def wrong(i: int, answer: str) -> bool:
        return truths[questions[i]].denies(answer)

    asked = of.texts(spark, questions)
    optimized, written = probe.prepare(asked), probe.prepareAsWritten(asked)
    yield of.Suite("partial bounds", lambda: optimized.verdicts(of.ALL), wrong, questions=questions)
    yield of.Suite("partial bounds, as written", lambda: written.verdicts(of.ALL), wrong, questions=questions)
    yield of.Suite("partial bounds, told", optimized.explained, of.is_error, questions=questions)


def _conditions() -> list[str]:
    found = []
    for name, pool in zip(TYPES, POOLS.values(), strict=True):
        v, w = pool[(len(pool) - 1) // 2], pool[-2] if len(pool) > 2 else pool[-1]
        found += [form.format(c=name, v=v, w=w) for form in ASKED["compared"]]
    found += [form.format(c=term, v=v, w=w) for term, (v, w) in ASKED["terms"].items() for form in ASKED["forms"]]
    found += [form.format(a=a, b=b) for a, b in ASKED["pairs"] for form in ASKED["related"]]
    return list(dict.fromkeys([*found, *ASKED["others"]]))


def _rows(rng: Random) -> list[list[str]]:
    """Few values a column, of which one may be NULL and one NaN."""
    few = {column: rng.sample([*range(len(pool)), -1], k=rng.choice([1, 1, 2])) for column, pool in POOLS.items()}
    rows = []
    for _ in range(rng.randint(1, MOST_ROWS)):
        chosen = [(column, rng.choice(few[column])) for column in POOLS]
        rows.append([_value(column, place, rng) for column, place in chosen])
    return rows


def _value(column: str, place: int, rng: Random) -> str:
    if place < 0:
        return NAN if _may_be_nan(column) and rng.random() < 0.5 else NULL
    return POOLS[column][place]


def _may_be_nan(column: str) -> bool:
    return column.endswith(("DOUBLE", "FLOAT"))


def _zone(rows: list[list[str]], rng: Random) -> dict[str, Any]:
    """What is known of a file: of each column all, or all but something."""
    columns = {}
    for (column, pool), values in zip(POOLS.items(), zip(*rows, strict=True), strict=True):
        places = [pool.index(value) for value in values if value in pool]
        known: dict[str, Any] = {"nulls": values.count(NULL)}
        if _may_be_nan(column):
            known["nans"] = values.count(NAN)
        if places:
            cut_lo, cut_hi = (rng.random() < 0.2 for _ in range(2))
            known |= {"lo": pool[max(min(places) - cut_lo, 0)], "hi": pool[min(max(places) + cut_hi, len(pool) - 1)]}
            known |= {"lo_exact": False} if cut_lo else {}
            known |= {"hi_exact": False} if cut_hi else {}
        for part, share in {"lo": 0.15, "hi": 0.15, "nulls": 0.1, "nans": 0.1}.items():
            if rng.random() < share:
                known.pop(part, None)
        if rng.random() < 0.95:
            columns[column.split(" ")[0]] = known
    return {"rows": len(rows), "columns": columns}


def _select(number: int, row: list[str]) -> str:
    values = (f"CAST({value} AS {kind}) AS {name}" for (name, kind), value in zip(TYPES.items(), row, strict=True))
    return f"SELECT {number} AS file, {', '.join(values)}"


def _truths(spark: SparkSession, texts: list[str]) -> dict[str, of.Truth]:
    """Of the conditions that Spark answers of each row."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is there by now

    asked = ", ".join(f"coalesce(({text}), false)" for text in texts)
    try:
        found = spark.sql(f"SELECT file, {asked} FROM partial").collect()
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return _truths(spark, texts[:half]) | _truths(spark, texts[half:])
    return {
        text: of.Truth(_files(found, i, wanted=True), _files(found, i, wanted=False)) for i, text in enumerate(texts, 1)
    }


def _files(rows: list[Any], place: int, *, wanted: bool) -> str:
    """Each file with a row of which a condition is true, or is not."""
    found = {row.file for row in rows if row[place] is wanted}
    return "".join("01"[file in found] for file in range(FILES))
