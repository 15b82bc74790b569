"""Questions about first rows, LIMIT, aggregates and the layout of columns, with brute force over rows in memory."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from decimal import Decimal, InvalidOperation, localcontext
from typing import TYPE_CHECKING, Any

from metastore.format.manifest import TableIdentity
from metastore.jvm_session import find_shim_package
from mutation import suites
from oracle import parquet
from oracle.columns import FLOATS, INTEGER_BITS, WIDE, Leaf, is_nan
from planner import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

QUESTIONS = 250
FUNCTIONS = ("count(*)", "count(1)", "count(null)", "count({0})", "min({0})", "max({0})", "count(distinct({0}))")
FUNCTIONS += (
    "any_value({0})",
    "min(DISTINCT {0})",
    "count({0}) FILTER (WHERE {1} IS NULL)",
    "count(DISTINCT 1)",
    "count({0},{1})",
    "count(distinct({0}),{1})",
    "GROUP BY {0}",
)
OF_NUMBERS = ("sum({0})", "avg({0})", "sum(DISTINCT {0})")
FEW_COLUMNS = {
    "a": "INT", "b": "BIGINT", "t": "TINYINT", "x": "DOUBLE", "n": "DECIMAL(4,1)", "s": "STRING", "c": "CHAR(3)",
    "v": "VARCHAR(3)", "o": "INTERVAL DAY TO SECOND", "e": "STRING COLLATE UTF8_LCASE", "failing": "INT",
}  # fmt: skip
"""Of each kind one; the probes fail to find the last."""
OF_FEW = (
    "a > 100 AND failing = 1", "failing = 1", "failing + a > 5 AND a % 2 = 0 AND a > 100", "c = '200' AND a > 100",
    "c > '200'", "v > '200'", "v = '050'",
    "o IS NULL", "e = 'X' OR a > 100", "c IS NULL OR x > 1e9", "hidden = 'x'", "hidden = 'x' AND a > 100",
)  # fmt: skip
OF_ALL = ("count(*)", "count({0})", "min({0})", "max({0})", "count(distinct({0}))", "GROUP BY {0}")
ALL_LISTED = 100_000
"""So many listed values of a column are merged at most."""


def make_suites(
    spark: SparkSession, subject: Subject, probe: Any, files: Sequence[str], source: str, rng: Random
) -> Iterator[suites.Suite]:
    """Yields the questions of every kind about the files of a table, in the order of their answers."""
    rules = find_shim_package(spark).pruning.RuleProbe(probe)
    leaves = list(subject.leaves)
    named = {leaf.sql: leaf for leaf in leaves}
    values = [subject.values[file] for file in files]
    firsts = [_first(leaves, values, rng) for _ in range(QUESTIONS)]

    def lost(i: int, answer: str) -> bool:
        return suites.is_error(i, answer) or loses_first(firsts[i], answer, named, values)

    yield _suite(spark, f"first rows, {source}", rules.first, firsts, lost)
    limits = [_limit(values, rng) for _ in range(QUESTIONS)]

    def short(i: int, answer: str) -> bool:
        return suites.is_error(i, answer) or leaves_too_few(limits[i], answer, values)

    yield _suite(spark, f"LIMIT, {source}", rules.limited, limits, short)
    measures = _sums_of_one(leaves, len(files))
    for leaf in leaves:
        for function in (*FUNCTIONS, *(OF_NUMBERS if _is_number(leaf.type) else ())):
            text = function.format(leaf.sql, rng.choice(leaves).sql)
            measures += [f"{text}\t{_parted(len(files), share, rng)}" for share in (1, 0.6, 0.2)]

    def miscounts(i: int, answer: str) -> bool:
        return suites.is_error(i, answer) or counts_others(measures[i], answer, named, values)

    yield _suite(spark, f"aggregates, {source}", rules.measured, measures, miscounts)
    yield _suite(spark, f"layout, {source}", rules.layout, list(named), suites.is_error)
    yield _suite(spark, f"decisions, {source}", rules.decided, _decisions(len(files), rng), suites.is_error)


def _sums_of_one(leaves: Sequence[Leaf], files: int) -> list[str]:
    """Of each file alone, and where that one is read: what is too much is no more than just too much."""
    nothing, alone = "0" * files, file_subsets(files, 1)[1:]
    functions = [f"{name}({leaf.sql})" for leaf in leaves if _is_number(leaf.type) for name in ("sum", "avg")]
    pairs = [(files, nothing) for files in alone] + [(nothing, files) for files in alone]
    return [f"{function}\t{known_files}\t{other_files}" for function in functions for known_files, other_files in pairs]


def _is_number(kind: str) -> bool:
    return kind in INTEGER_BITS or kind in FLOATS or kind.startswith("decimal")


def _decisions(files: int, rng: Random) -> list[str]:
    optional = [[_bits(files, 0.5, rng), "-"] for _ in range(3)]
    return [
        "\t".join([survivors, _bits(files, 0.1, rng), _bits(files, 0.1, rng), limited, answered])
        for survivors in (*optional[0], "1" * files, "0" * files)
        for limited in optional[1]
        for answered in optional[2]
    ]


def few_file_suites(spark: SparkSession, rng: Random) -> Iterator[suites.Suite]:
    """Yields questions about each pair of a few files at the edges of knowledge; no rows say what is right."""
    package, length = find_shim_package(spark).pruning, len(FEW_FILES)
    schema = ", ".join(f"{name} {kind}" for name, kind in FEW_COLUMNS.items())

    def probe(files: Sequence[dict]) -> Any:
        return package.PruningProbe.ofZones(spark._jsparkSession, schema, json.dumps(files))

    of_all = probe(FEW_FILES)
    rules = package.RuleProbe(of_all)
    yield _suite(spark, "first rows, few", rules.first, _firsts(length), suites.is_error)
    yield _suite(spark, "LIMIT, few", rules.limited, _limits(length), suites.is_error)
    yield _suite(spark, "aggregates, few", rules.measured, _measures(length), suites.is_error)
    yield _suite(spark, "decisions, few", rules.decided, _decisions(length, rng), suites.is_error)
    for order in ((0, 1, 2), (2, 1, 0), (0, 1, 2, 7, 8), (1, 0, 13, 2), range(length)):
        layout = package.RuleProbe(probe([FEW_FILES[i] for i in order])).layout
        yield _suite(spark, f"layout, few {list(order)}", layout, ["a", "s", "o"], suites.is_error)
    prepared = of_all.prepare(suites.texts(spark, OF_FEW))
    yield suites.Suite(
        "conditions, few", ask=lambda: prepared.verdicts(suites.ALL), wrong=suites.is_error, questions=OF_FEW
    )
    yield suites.Suite("conditions, few, told", ask=prepared.explained, wrong=suites.is_error, questions=OF_FEW)


def file_subsets(length: int, most: int = 2) -> list[str]:
    """Each choice of so many files."""
    subsets = (subset for n in range(most + 1) for subset in itertools.combinations(range(length), n))
    return ["".join("01"[i in subset] for i in range(length)) for subset in subsets]


def _firsts(length: int) -> list[str]:
    limits = {"a": (1, 10, 11, 20), "s": (10,), **dict.fromkeys("ecox", (1,))}
    orders = list(itertools.product(("true", "false"), repeat=2))
    return [
        f"{limit}\t{column}\t{ascending}\t{nulls_first}\t{'1' * length}\t{full}"
        for column, of_column in limits.items()
        for limit in of_column
        for ascending, nulls_first in orders
        for full in file_subsets(length)
    ]


def _limits(length: int) -> list[str]:
    return [
        f"{limit}\t{survivors}\t{full}"
        for limit in (0, 1, 10, 11, 21)
        for survivors in ("1" * length, "0" + "1" * (length - 1))
        for full in file_subsets(length)
    ]


def _measures(length: int) -> list[str]:
    columns = [name for name in FEW_COLUMNS if name != "failing"]
    nothing = "0" * length
    alone = [
        f"{aggregate.format(c)}\t{files}\t{nothing}"
        for c in columns
        for aggregate in OF_ALL
        for files in file_subsets(length)
    ]
    sums = [f"{name}({column})" for name in ("sum", "avg") for column in "abtnx"]
    merged = itertools.product(sums, file_subsets(length, 1)[:2], file_subsets(length))
    return [*alone, *(f"{aggregate}\t{files}\t{other_files}" for aggregate, files, other_files in merged)]


def many_value_suites(spark: SparkSession, folder: Path) -> Iterator[suites.Suite]:
    """Lists that are just short enough to be merged, and one value more."""
    half = ALL_LISTED // 2
    probe = _open_listed(spark, folder, [range(half), range(half, ALL_LISTED), [ALL_LISTED]])
    questions = suites.texts(spark, [f"count(distinct(v))\t{files}\t000" for files in ("110", "111", "011")])
    rules = find_shim_package(spark).pruning.RuleProbe(probe)
    yield suites.Suite(
        "many values", ask=lambda: rules.measured(questions), wrong=suites.is_error, only=("FileMeasures.scala",)
    )


def many_point_suites(spark: SparkSession, folder: Path) -> Iterator[suites.Suite]:
    """Yields sets of just so many values, and of one more, of which a sample of the files is looked at first.

    The limits are those of `ValueLookups.scala`: 1,000 values, and 256 files.
    """
    number_of_files = 320
    values_of = [(-1, 10 * number + 5, 1_000_000) for number in range(number_of_files)]
    probe = _open_listed(spark, folder, values_of)
    few, many = 1000, 1001
    sets = [
        range(0, 10 * few, 10),
        range(0, 10 * many, 10),
        range(0, 5 * many, 5),
        *([10 * number + 5 * (number % share != 0) for number in range(many)] for share in (3, 7)),
        [10 * number + 5 * (number % 7 != 0) for number in range(few)],
    ]
    questions = [f"v IN ({', '.join(f'{v}L' for v in points)})" for points in sets]
    truths = [
        suites.Truth("".join("10"[set(points).isdisjoint(values)] for values in values_of), "1" * number_of_files)
        for points in sets
    ]
    prepared = probe.prepare(suites.texts(spark, questions))
    yield suites.Suite(
        "many points",
        ask=lambda: prepared.verdicts(suites.ALL),
        wrong=lambda i, answer: truths[i].denies(answer),
        questions=questions,
        only=("ValueLookups.scala",),
    )


def _open_listed(spark: SparkSession, folder: Path, values_of: Sequence[Sequence[int]]) -> Any:
    """Writes statistics of files with a column `v`, whose values are all listed, and opens them."""
    leaf = Leaf(("v",), "bigint")
    column = parquet.column(leaf)
    identity = TableIdentity("parquet", parquet.identifier(folder), f"file:{folder}", folder.name)
    files = [
        written.DataFile(
            path=f"{number:04}",
            size=1,
            rows=len(values),
            modified=0,
            columns={column: parquet.summary(leaf, values)},
            values={column: written.Values("complete", [(v, 1) for v in values])},
        )
        for number, values in enumerate(values_of)
    ]
    written.Written(identity, files).write()
    package = find_shim_package(spark).pruning
    return package.PruningProbe.open(spark._jsparkSession, "v BIGINT", f"{folder}/_metastore", identity.uuid)


def _file(rows: int, lo: int | None, hi: int | None) -> dict[str, Any]:
    """A file of few, with bounds as far as they are known."""
    columns = {}
    for name in FEW_COLUMNS:
        form = "'{:03}'" if name in "scv" else "{}"
        bounds = {side: form.format(bound) for side, bound in (("lo", lo), ("hi", hi)) if bound is not None}
        columns[name] = {"nulls": 0, "nans": 0, **(bounds if name not in "oe" else {})}
    return {"rows": rows, "columns": columns}


FEW_FILES = [
    _file(10, 0, 100), _file(10, 10, 20), _file(10, 30, 40), _file(0, None, None), {"rows": 10, "columns": {}},
    {"rows": 10, "columns": {name: {"nulls": 10} for name in FEW_COLUMNS}},
    {"rows": 10, "columns": {name: {**known, "nulls": 10} for name, known in _file(10, 1, 2)["columns"].items()}},
    _file(10, 5, None), _file(10, None, 50), {"columns": {}}, {"rows": 1, "columns": {}},
    {"rows": 1 << 31, "columns": {}}, {"rows": 1 << 33, "columns": {}}, _file(1, 3, 3), _file(10, 0, 0),
]  # fmt: skip
"""Ranges, no rows, nothing known, nothing but nulls, a contradiction, a bound unknown, rows unknown, and many rows."""


def _suite(spark: SparkSession, name: str, ask: Any, questions: Sequence[str], wrong: Any) -> suites.Suite:
    java_questions = suites.texts(spark, questions)
    return suites.Suite(name, ask=lambda: ask(java_questions), wrong=wrong, questions=questions)


def _bits(length: int, share: float, rng: Random) -> str:
    return "".join("1" if rng.random() < share else "0" for _ in range(length))


def _parted(length: int, share: float, rng: Random) -> str:
    """Some files, and some of the others, behind a tab."""
    subset = _bits(length, share, rng)
    return f"{subset}\t{''.join('0' if bit == '1' else rng.choice('01') for bit in subset)}"


def _first(leaves: Sequence[Leaf], values: Sequence[dict[Leaf, list]], rng: Random) -> str:
    limit = rng.choice([1, 2, 5, 20, 100, 1000])
    orders = [rng.choice(["true", "false"]) for _ in range(2)]
    candidates, full = (_bits(len(values), share, rng) for share in (rng.choice([1, 0.7]), rng.choice([1, 0.5, 0.1])))
    return "\t".join([str(limit), rng.choice(leaves).sql, *orders, candidates, full])


def _limit(values: Sequence[dict[Leaf, list]], rng: Random) -> str:
    survivors, full = (_bits(len(values), share, rng) for share in (rng.choice([1, 0.7]), rng.choice([1, 0.5, 0.1])))
    enough = sum(_rows(of_file) for of_file, s, f in zip(values, survivors, full, strict=True) if s == f == "1")
    return f"{rng.choice([0, 1, 2, 5, 20, enough - 1, enough, enough + 1])}\t{survivors}\t{full}"


def _rows(of_file: dict[Leaf, list]) -> int:
    return len(next(iter(of_file.values())))


def _bits_of(answer: str, length: int) -> str:
    bits = answer.partition(" ")[0]
    return bits if set(bits) <= {"0", "1"} and bits else "0" * length


def loses_first(question: str, answer: str, named: dict[str, Leaf], values: Sequence[dict[Leaf, list]]) -> bool:
    """Tells whether a row of a file that is left out could be among the first, those of full files being certain."""
    limit, column, ascending, nulls_first, candidates, full = question.split("\t")
    leaf = named[column]

    def sort_key(value: Any) -> tuple:
        if value is None:
            return (0 if nulls_first == "true" else 2,)
        return (1, _Descending(value) if ascending == "false" else _Ascending(value))

    certain = sorted(sort_key(v) for of_file, f in zip(values, full, strict=True) if f == "1" for v in of_file[leaf])
    left_out = _bits_of(answer, len(values))
    for of_file, bit, candidate in zip(values, left_out, candidates, strict=True):
        if bit == "1" and (candidate == "0" or len(certain) < int(limit)):
            return True
        if bit == "1" and any(sort_key(v) <= certain[int(limit) - 1] for v in of_file[leaf]):
            return True
    return False


def leaves_too_few(question: str, answer: str, values: Sequence[dict[Leaf, list]]) -> bool:
    """Tells whether the files that a LIMIT still reads do not hold enough rows that are certain to match."""
    limit, survivors, full = question.split("\t")
    left_out = _bits_of(answer, len(values))
    if "1" not in left_out:
        return False
    rows = sum(
        _rows(of_file)
        for of_file, bit, s, f in zip(values, left_out, survivors, full, strict=True)
        if bit == "0" and s == "1" and f == "1"
    )
    return rows < int(limit)


def counts_others(question: str, answer: str, named: dict[str, Leaf], values: Sequence[dict[Leaf, list]]) -> bool:
    """Tells whether a count or a sum is not that of the rows of the files that are known."""
    function = question.partition("\t")[0]
    if answer == "none":
        return False
    known_files, total, parts = answer.split(" ")
    files = [of_file for of_file, bit in zip(values, known_files, strict=False) if bit == "1"]
    if function in {"count(*)", "count(1)"}:
        return total != str(sum(map(_rows, files)))
    name, column = _parsed(function)
    leaf = named.get(column)
    if leaf is None or name not in CHECKED:
        return name.startswith("count")  # of a constant, of several columns
    values_of_column = [v for of_file in files for v in of_file[leaf]]
    try:
        return not all(CHECKED[name](values_of_column, stated) for stated in (total, parts))
    except (ValueError, InvalidOperation):  # it is no number
        return True


def _parsed(function: str) -> tuple[str, str]:
    for name in CHECKED:
        if function.startswith(name):
            return name, function.removeprefix(name).rstrip(")")
    return function, ""


def _counts(values: Sequence[Any], stated: str) -> bool:
    return stated == str(sum(v is not None for v in values))


def _counts_distinct(values: Sequence[Any], stated: str) -> bool:
    return stated.partition(":")[0] == str(len({_Ascending(v) for v in values if v is not None}))


def _sums(values: Sequence[Any], stated: str) -> bool:
    present = [v for v in values if v is not None]
    if stated in {"none", "null"}:
        return stated == "none" or not present
    with localcontext(WIDE):
        return Decimal(stated.partition("|")[0]) == sum(map(Decimal, present))


def _means(values: Sequence[Any], stated: str) -> bool:
    """A mean, or a sum and a count behind a bar."""
    present = [v for v in values if v is not None]
    if stated == "none" or not present:
        return stated in {"none", "null", "null|0"}
    if "|" in stated:
        total, count = stated.split("|")
        return int(count) == len(present) and _is_near(float(total), float(sum(present)))
    return _is_near(float(stated), float(sum(present)) / len(present))


def _is_near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-5 + 1e-9 * abs(b)  # decimals are rounded behind their point


def _groups(values: Sequence[Any], stated: str) -> bool:
    rows = sorted(Counter(_Ascending(v) if v is not None else None for v in values).values())
    return stated == "none" or sorted(int(group.rpartition("=")[2]) for group in stated.split("|") if group) == rows


CHECKED = {
    "count(distinct(": _counts_distinct,
    "count(": _counts,
    "sum(": _sums,
    "avg(": _means,
    "GROUP BY ": _groups,
}
"""What a function's answer has to be of these values; parts that are merged are of the same."""


class _Ascending:
    """A value in Spark's order: NaN is the largest."""

    def __init__(self, value: Any) -> None:
        self.key = (is_nan(value), 0 if is_nan(value) else value)

    def __lt__(self, other: Any) -> bool:
        return self.key < other.key

    def __le__(self, other: Any) -> bool:
        return self.key <= other.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ascending) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class _Descending(_Ascending):
    def __lt__(self, other: Any) -> bool:
        return other.key < self.key

    def __le__(self, other: Any) -> bool:
        return other.key <= self.key
