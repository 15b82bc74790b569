"""Questions about first rows, LIMIT, aggregates and the layout of columns, with brute force over rows in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.jvm_session import find_shim_package
from mutation import suites as of
from oracle.columns import is_nan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.columns import Leaf
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
)


def suites(
    spark: SparkSession, subject: Subject, probe: Any, files: Sequence[str], source: str, rng: Random
) -> Iterator[of.Suite]:
    """Yields the questions of every kind about the files of a table, in the order of their answers."""
    rules = find_shim_package(spark).pruning.RuleProbe(probe)
    leaves = list(subject.leaves)
    named = {leaf.sql: leaf for leaf in leaves}
    values = [subject.values[file] for file in files]
    firsts = [_first(leaves, values, rng) for _ in range(QUESTIONS)]

    def lost(i: int, answer: str) -> bool:
        return of.is_error(i, answer) or loses_first(firsts[i], answer, named, values)

    yield _suite(spark, f"first rows, {source}", rules.first, firsts, lost)
    limits = [_limit(values, rng) for _ in range(QUESTIONS)]

    def short(i: int, answer: str) -> bool:
        return of.is_error(i, answer) or leaves_too_few(limits[i], answer, values)

    yield _suite(spark, f"LIMIT, {source}", rules.limited, limits, short)
    measures = []
    for leaf in leaves:
        for function in FUNCTIONS:
            text = function.format(leaf.sql, rng.choice(leaves).sql)
            measures += [f"{text}\t{_bits(len(files), share, rng)}" for share in (1, 0.2)]

    def miscounts(i: int, answer: str) -> bool:
        return of.is_error(i, answer) or counts_others(measures[i], answer, named, values)

    yield _suite(spark, f"aggregates, {source}", rules.measured, measures, miscounts)
    yield _suite(spark, f"layout, {source}", rules.layout, list(named), of.is_error)
    optional = [[_bits(len(files), 0.5, rng), "-"] for _ in range(3)]
    decisions = [
        "\t".join([kept, _bits(len(files), 0.1, rng), _bits(len(files), 0.1, rng), limited, answered])
        for kept in (*optional[0], "1" * len(files), "0" * len(files))
        for limited in optional[1]
        for answered in optional[2]
    ]
    yield _suite(spark, f"decisions, {source}", rules.decided, decisions, of.is_error)


def _suite(spark: SparkSession, name: str, ask: Any, questions: Sequence[str], wrong: Any) -> of.Suite:
    asked = of.texts(spark, questions)
    return of.Suite(name, lambda: ask(asked), wrong, questions=questions)


def _bits(length: int, share: float, rng: Random) -> str:
    return "".join("1" if rng.random() < share else "0" for _ in range(length))


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

    def place(value: Any) -> tuple:
        if value is None:
            return (0 if nulls_first == "true" else 2,)
        return (1, _Descending(value) if ascending == "false" else _Ascending(value))

    certain = sorted(place(v) for of_file, f in zip(values, full, strict=True) if f == "1" for v in of_file[leaf])
    left_out = _bits_of(answer, len(values))
    for of_file, bit, candidate in zip(values, left_out, candidates, strict=True):
        if bit == "1" and (candidate == "0" or len(certain) < int(limit)):
            return True
        if bit == "1" and any(place(v) <= certain[int(limit) - 1] for v in of_file[leaf]):
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
    """Tells whether a count is not that of the rows of the files that are known."""
    function = question.partition("\t")[0]
    known, _, told = answer.partition(" ")
    files = [of_file for of_file, bit in zip(values, known, strict=False) if bit == "1"]
    if answer == "none" or not function.startswith("count("):
        return False
    if function in {"count(*)", "count(1)"}:
        return told != str(sum(map(_rows, files)))
    column = function.removeprefix("count(").removesuffix(")")
    if column in named:
        return told != str(sum(v is not None for of_file in files for v in of_file[named[column]]))
    leaf = named.get(column.removeprefix("distinct(").removesuffix(")"))
    return leaf is None or told != str(
        len({_Ascending(v) for of_file in files for v in of_file[leaf] if v is not None})
    )


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
