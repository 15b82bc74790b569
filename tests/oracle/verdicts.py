"""Asks the product which files it would read: the rules alone, the stored statistics, whole queries."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructField, StructType

from metastore.jvm_session import find_shim_package
from oracle import reading
from oracle.columns import BYTES
from oracle.literals import literal
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from oracle.columns import Leaf
    from oracle.tables import Subject
    from oracle.zones import Zone

T = TypeVar("T")
U = TypeVar("U")
GONE = ""
"""Stands for the files of older snapshots."""


def ddl_of(spark: SparkSession, relation: str) -> str:
    """Returns the columns as DDL, without the defaults that some of them have."""
    fields = [StructField(f.name, f.dataType) for f in spark.sql(f"SELECT * FROM {relation} LIMIT 0").schema.fields]
    jvm: Any = spark._jvm
    return str(jvm.org.apache.spark.sql.types.DataType.fromJson(StructType(fields).json()).toDDL())


def _zone(leaf: Leaf, zone: Zone) -> dict[str, Any]:
    statistics: dict[str, Any] = {"nulls": zone.nulls, "nans": zone.nans}
    if zone.present:
        statistics["lo"] = literal(leaf.type, zone.lo)
        if zone.hi is not None:
            statistics["hi"] = literal(leaf.type, zone.hi)
        if leaf.type in BYTES:
            statistics["lo_exact"] = statistics["hi_exact"] = zone.exact
    return statistics


def _probes(spark: SparkSession) -> Any:
    return find_shim_package(spark).pruning.PruningProbe


class Rules:
    """The pruning rules over bounds that the oracle computed itself; `empty` gives them files without statistics."""

    looks_up = False

    def __init__(self, spark: SparkSession, subject: Subject, *, empty: bool = False) -> None:
        self.spark = spark
        self.files = list(subject.zones)
        zones = [
            {
                "rows": len(next(iter(subject.values[file].values()))),
                "columns": {}
                if empty
                else {".".join(leaf.path): _zone(leaf, z) for leaf, z in subject.zones[file].items()},
            }
            for file in self.files
        ]
        self.probe = _probes(spark).ofZones(spark._jsparkSession, ddl_of(spark, subject.relation), json.dumps(zones))

    def kept_files(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that it would read."""
        return _kept_files(self.spark, self.probe, self.files, predicates)

    def fully_matching_files(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files of which all rows are said to match."""
        return _matched(self.probe, self.files, predicates)


class Stored:
    """The pruning rules over the statistics that ANALYZE stored; files without statistics are read."""

    looks_up = True

    def __init__(self, spark: SparkSession, subject: Subject, location: str, uuid: str) -> None:
        self.spark = spark
        ddl = ddl_of(spark, subject.relation)
        self.probe = _probes(spark).open(spark._jsparkSession, ddl, f"{location}/_metastore", uuid)
        paths = subject.paths()
        self.files = [paths.get(path, GONE) for path in self.probe.paths()]
        self.unknown = frozenset(subject.zones) - frozenset(self.files)
        self.read = self.unknown | subject.changed

    def kept_files(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that it would read."""
        return [(files | self.read) - {GONE} for files in _kept_files(self.spark, self.probe, self.files, predicates)]

    def fully_matching_files(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files of which all rows are said to match; changed ones have other rows."""
        return [files - {GONE} - self.read for files in _matched(self.probe, self.files, predicates)]


def _matched(probe: Any, files: Sequence[str], predicates: Sequence[str]) -> list[frozenset[str]]:
    answers = [probe.matchedFully(predicate) for predicate in predicates]
    return [frozenset(f for f, bit in zip(files, answer, strict=True) if bit == "1") for answer in answers]


def _kept_files(
    spark: SparkSession, probe: Any, files: Sequence[str], predicates: Sequence[str]
) -> list[frozenset[str]]:
    java_predicates = spark._sc._gateway.new_array(spark._jvm.java.lang.String, len(predicates))
    for i, predicate in enumerate(predicates):
        java_predicates[i] = predicate
    answers = probe.keptByAll(java_predicates)
    return [frozenset(f for f, bit in zip(files, answer, strict=True) if bit == "1") for answer in answers]


def _texts(relation: str, predicate: str) -> str:
    return f"SELECT to_json(struct(*)) FROM {relation} WHERE {predicate}"


class Queries:
    """Whole queries with the extension on: the files that their tasks open, which has to be what EXPLAIN says.

    Where the subject shows its rows without any skipping, their answers have to be those of the rows.
    """

    looks_up = True

    def __init__(self, spark: SparkSession, subject: Subject) -> None:
        self.spark = spark
        self.relation = subject.table or subject.relation
        self.rows = subject.relation if subject.table else None
        self.changed = subject.changed
        self.paths = subject.paths()

    def kept_files(self, predicates: Sequence[str]) -> list[frozenset[str] | None]:
        """Returns for every predicate the files that a query would read; None: no query with it can be planned."""
        return [self._unless_unplannable(self.read, p, None) for p in predicates]

    def read(self, predicate: str) -> frozenset[str]:
        """Returns the files that a query's scan opens; none where Spark needs no scan."""
        query = f"SELECT * FROM {self.relation} WHERE {predicate}"
        opened = frozenset(itertools.chain.from_iterable(reading.files(self.spark.sql(query))))
        decisions = self._decisions(predicate)
        kept_files = self._files(row for row in decisions if row.kept())
        assert opened == kept_files, f"{predicate} reads {sorted(opened)} and EXPLAIN says {sorted(kept_files)}"
        ours = self._files(row for row in decisions if _is_left_out(row))
        assert not self.changed & ours, f"{predicate} skips files with log files"
        if self.rows is not None:
            without = plans.plain(self.spark, _texts(self.rows, predicate))
            assert plans.rows(self.spark.sql(_texts(self.relation, predicate))) == without, predicate
        return opened

    def skipped_files(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that the Metastore, not Spark or the format, would skip."""
        return [self._unless_unplannable(self._left_out, p, frozenset()) for p in predicates]

    def _left_out(self, predicate: str) -> frozenset[str]:
        return self._files(row for row in self._decisions(predicate) if _is_left_out(row))

    def file_verdicts(self, predicate: str) -> dict[str, bool]:
        """Returns what `metastore.explain` says of every file of a query's scan: whether it is read."""
        return {self.paths[row.path().get()]: row.kept() for row in self._decisions(predicate)}

    def _files(self, decisions: Iterable[Any]) -> frozenset[str]:
        return frozenset(self.paths[row.path().get()] for row in decisions)

    def _decisions(self, predicate: str) -> list[Any]:
        query = f"SELECT * FROM {self.relation} WHERE {predicate}"
        rows = find_shim_package(self.spark).explain.ExplainQuery.decisions(self.spark._jsparkSession, query)
        decisions = (rows.apply(i) for i in range(rows.size()))
        return [row for row in decisions if row.path().isDefined()]

    def _unless_unplannable(self, ask: Callable[[str], T], predicate: str, otherwise: U) -> T | U:
        try:
            return ask(predicate)
        except Py4JJavaError:
            if self.plans_without_us(predicate):
                raise
            return otherwise

    def plans_without_us(self, predicate: str) -> bool:
        """Tells whether Spark can plan a query.

        It cannot hand a null of type binary to Iceberg; Hudi cannot compare its partition statistics of binary columns.
        """
        self.spark.conf.set("spark.metastore.enabled", "false")
        try:
            query = f"SELECT * FROM {self.relation} WHERE {predicate}"
            self.spark.sql(query)._jdf.queryExecution().optimizedPlan()
        except Py4JJavaError:
            return False
        finally:
            self.spark.conf.unset("spark.metastore.enabled")
        return True


def _is_left_out(decision: Any) -> bool:
    return not decision.kept() and decision.reason() != "SKIPPED_BY_FORMAT"
