"""Files of which statistics know a part, and conditions of every kind that rules know: Spark says which rows match."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore.format.manifest import TableIdentity
from metastore.jvm_session import find_shim_package
from mutation import rows as of_rows
from mutation import suites
from oracle import details, parquet, tables
from planner import plans, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.columns import Leaf

FILES, MOST_ROWS, AT_ONCE, FEW = 70, 3, 32, 3
NULL, NAN = "NULL", "double('NaN')"
ZONES = ("America/Los_Angeles", "Asia/Tokyo")
"""Los Angeles changes its clocks every year, Tokyo no longer does. ANSI mode is off in both."""
OF_TIMES = re.compile(r"\b[defnt]\b|TIMESTAMP|DATE|unixtime|timestamp_")
LOST = {"lo": 0.15, "hi": 0.15, "nulls": 0.1, "nans": 0.1, "sum": 0.15}
"""What may be unknown of a column of a file, and of how many."""
ASKED = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Of each column some values in the order of its bounds (`pools`); forms of conditions on one column and two of its
values (`compared`), and on two columns (`related`, of `pairs`); functions of a column, each with two values to compare
it with (`terms`), in `forms`; other conditions; and some that raise errors of some values, which have no truth."""
POOLS: dict[str, list[str]] = ASKED["pools"]
TYPES = dict(column.split(" ") for column in POOLS)


def make_suites(spark: SparkSession, rng: Random, folder: Path) -> Iterator[suites.Suite]:
    """Yields the conditions as optimized, as written, and with their explanations; by bounds, and by values too."""
    spark.udf.register("given", lambda value: value, "int")
    files = [_rows(rng) for _ in range(FILES)]
    zones = [_zone(file, rng) for file in files]
    schema = ", ".join(POOLS)
    probes = find_shim_package(spark).pruning.PruningProbe
    values = ", ".join(_row(number, row) for number, rows in enumerate(files) for row in rows)
    # Spark answers queries of a list of values while it optimizes them, which takes no job and no compiler.
    rows_of_files = f"SELECT * FROM VALUES {values} AS t(file, {', '.join(TYPES)})"
    spark.sql(rows_of_files).createOrReplaceTempView("partial")
    conditions = _conditions()
    truths = _truths_of(spark, conditions)
    yield from _of(
        spark, "bounds", probes.ofZones(spark._jsparkSession, schema, json.dumps(zones)), truths, single=False
    )
    for zone in ZONES:
        conf = (("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", zone))
        with plans.conf(spark, **dict(conf)):
            spark.sql(rows_of_files).createOrReplaceTempView("partial")
            probe = probes.ofZones(spark._jsparkSession, schema, json.dumps(zones))
            there = _truths_of(spark, [text for text in conditions if text not in truths or OF_TIMES.search(text)])
        yield from _of(spark, f"bounds in {zone}", probe, there, single=False, conf=conf)
    spark.sql(rows_of_files).createOrReplaceTempView("partial")
    with plans.conf(spark, **{"spark.sql.session.timeZone": "UTC"}):
        subject = tables.observe(spark, "partial", "partial", "CAST(file AS STRING)", without=("file",))
    names = list(map(str, range(FILES)))
    identity = TableIdentity("parquet", parquet.identifier(folder), f"file:{folder}", "partial")
    stored = [_stored(f"{int(name):04}", subject.values[name], rng) for name in names]
    written.Written(identity, stored).write()
    probe = probes.open(spark._jsparkSession, schema, f"{folder}/_metastore", identity.uuid)
    any_answer = suites.Truth("0" * FILES, "0" * FILES)
    yield from _of(spark, "statistics", probe, truths | dict.fromkeys(ASKED["raising"], any_answer), single=True)
    yield from of_rows.make_suites(spark, subject, probe=probe, files=names, source="partial", rng=rng)


def _of(
    spark: SparkSession,
    name: str,
    probe: Any,
    truths: dict[str, suites.Truth],
    *,
    single: bool,
    conf: tuple[tuple[str, str], ...] = (),
) -> Iterator[suites.Suite]:
    """Yields suites of few conditions, so that a mutant runs few in vain. `single`: with single values of files."""
    listed = list(truths)
    for start in range(0, len(listed), AT_ONCE):
        questions = listed[start : start + AT_ONCE]
        java_questions = suites.texts(spark, questions)
        with plans.conf(spark, **dict(conf)):
            optimized, as_written = probe.prepare(java_questions), probe.prepareAsWritten(java_questions)

        def wrong(i: int, answer: str, questions: Sequence[str] = questions) -> bool:
            return truths[questions[i]].denies(answer)

        asks = {"": (optimized, suites.ALL), "as written": (as_written, suites.ALL)}
        asks |= {"few values": (as_written, FEW), "no values": (as_written, 0)} if single else {}
        for how, (prepared, allowed) in asks.items():
            ask = lambda p=prepared, n=allowed: p.verdicts(n)  # noqa: E731
            yield suites.Suite(
                f"partial {name} from {start}, {how}", ask=ask, wrong=wrong, conf=conf, questions=questions
            )
        for how, prepared in {"told": optimized, "as written, told": as_written}.items():
            yield suites.Suite(
                f"partial {name} from {start}, {how}",
                ask=prepared.explained,
                wrong=suites.is_error,
                conf=conf,
                questions=questions,
            )


def _stored(path: str, values: dict[Leaf, list[Any]], rng: Random) -> written.DataFile:
    """A file with all that statistics may hold of it, or all but something."""
    step = rng.choice([1, 1, 1, 1, 2])  # of few files half of the columns are not known: each such choice is a block
    column_values = {parquet.column(leaf): (leaf, values[leaf]) for leaf in list(values)[::step]}
    columns = {column: _in_part(*of_leaf, rng) for column, of_leaf in column_values.items()}
    singles = {
        column: parquet.single_values(leaf, details.draw(leaf, samples, rng), samples)
        for column, (leaf, samples) in column_values.items()
    }
    return written.DataFile(
        path=path, size=1, rows=len(next(iter(values.values()))), modified=0, columns=columns, values=singles
    )


def _in_part(leaf: Leaf, values: Sequence[Any], rng: Random) -> written.Row:
    """True statistics of a column of a file, with some lost, a wrong sum, or more nulls than rows."""
    row = parquet.summary(leaf, values)
    lost = {part for part, share in LOST.items() if rng.random() < share}
    row = {key: value for key, value in row.items() if key.partition("_")[0] not in lost}
    for side in ("lo", "hi"):
        if rng.random() < 0.2 and f"{side}_exact" in row:
            row[f"{side}_exact"] = False
    if "sum_exact" in row and rng.random() < 0.2:
        present = [v for v in values if v is not None]
        most, least = (edge(parquet.unscaled(leaf.type, v) for v in present) * len(present) for edge in (max, min))
        row["sum_exact"] = rng.choice([most + 1, least - 1])
    return {**row, "nulls": len(values) + 1} if rng.random() < 0.03 else row


def _conditions() -> list[str]:
    questions = []
    for name, pool in zip(TYPES, POOLS.values(), strict=True):
        v, w = pool[(len(pool) - 1) // 2], pool[-2] if len(pool) > 2 else pool[-1]
        questions += [form.format(c=name, v=v, w=w) for form in ASKED["compared"]]
    questions += [form.format(c=term, v=v, w=w) for term, (v, w) in ASKED["terms"].items() for form in ASKED["forms"]]
    questions += [form.format(a=a, b=b) for a, b in ASKED["pairs"] for form in ASKED["related"]]
    return list(dict.fromkeys([*questions, *ASKED["others"]]))


def _rows(rng: Random) -> list[list[str]]:
    """Few values a column, of which one may be NULL and one NaN."""
    few = {column: rng.sample([*range(len(pool)), -1], k=rng.choice([1, 1, 2])) for column, pool in POOLS.items()}
    rows = []
    for _ in range(rng.randint(1, MOST_ROWS)):
        chosen = [(column, rng.choice(few[column])) for column in POOLS]
        rows.append([_value(column, value_index, rng) for column, value_index in chosen])
    return rows


def _value(column: str, value_index: int, rng: Random) -> str:
    if value_index < 0:
        return NAN if _may_be_nan(column) and rng.random() < 0.5 else NULL
    return POOLS[column][value_index]


def _may_be_nan(column: str) -> bool:
    return column.endswith(("DOUBLE", "FLOAT"))


def _zone(rows: list[list[str]], rng: Random) -> dict[str, Any]:
    """The zone of a file: all its columns complete, or all but some statistics."""
    columns = {}
    for (column, pool), values in zip(POOLS.items(), zip(*rows, strict=True), strict=True):
        indexes = [pool.index(value) for value in values if value in pool]
        statistics: dict[str, Any] = {"nulls": values.count(NULL)}
        if _may_be_nan(column):
            statistics["nans"] = values.count(NAN)
        if indexes:
            cut_lo, cut_hi = (rng.random() < 0.2 for _ in range(2))
            statistics |= {
                "lo": pool[max(min(indexes) - cut_lo, 0)],
                "hi": pool[min(max(indexes) + cut_hi, len(pool) - 1)],
            }
            statistics |= {"lo_exact": False} if cut_lo else {}
            statistics |= {"hi_exact": False} if cut_hi else {}
        for part, share in {"lo": 0.15, "hi": 0.15, "nulls": 0.1, "nans": 0.1}.items():
            if rng.random() < share:
                statistics.pop(part, None)
        if rng.random() < 0.95:
            columns[column.split(" ")[0]] = statistics
    return {"rows": len(rows), "columns": columns}


def _row(number: int, row: list[str]) -> str:
    return (
        f"({number}, {', '.join(f'CAST({value} AS {kind})' for kind, value in zip(TYPES.values(), row, strict=True))})"
    )


def _truths_of(spark: SparkSession, conditions: Sequence[str]) -> dict[str, suites.Truth]:
    starts = range(0, len(conditions), AT_ONCE)
    parts = [_truths(spark, list(conditions[start : start + AT_ONCE])) for start in starts]
    return {text: truth for part in parts for text, truth in part.items()}


def _truths(spark: SparkSession, texts: list[str]) -> dict[str, suites.Truth]:
    """Of the conditions that Spark answers of each row."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is there by now

    selected = ", ".join(f"coalesce(({text}), false)" for text in texts)
    try:
        rows = spark.sql(f"SELECT file, {selected} FROM partial").collect()
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return _truths(spark, texts[:half]) | _truths(spark, texts[half:])
    return {
        text: suites.Truth(_files(rows, i, is_true=True), _files(rows, i, is_true=False))
        for i, text in enumerate(texts, 1)
    }


def _files(rows: list[Any], position: int, *, is_true: bool) -> str:
    """Each file with a row of which a condition is true, or is not."""
    files = {row.file for row in rows if row[position] is is_true}
    return "".join("01"[file in files] for file in range(FILES))
