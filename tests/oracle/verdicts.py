"""Asks the product which files it would read: the rules alone, the stored statistics, whole queries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructField, StructType

from oracle.columns import BYTES
from oracle.literals import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from oracle.columns import Leaf
    from oracle.tables import Subject
    from oracle.zones import Zone


def ddl_of(spark: SparkSession, relation: str) -> str:
    """Returns the columns as DDL, without the defaults that some of them have."""
    fields = [StructField(f.name, f.dataType) for f in spark.sql(f"SELECT * FROM {relation} LIMIT 0").schema.fields]
    jvm: Any = spark._jvm
    return str(jvm.org.apache.spark.sql.types.DataType.fromJson(StructType(fields).json()).toDDL())


def _zone(leaf: Leaf, zone: Zone) -> dict[str, Any]:
    known: dict[str, Any] = {"nulls": zone.nulls, "nans": zone.nans}
    if zone.present:
        known["lo"] = literal(leaf.type, zone.lo)
        if zone.hi is not None:
            known["hi"] = literal(leaf.type, zone.hi)
        if leaf.type in BYTES:
            known["lo_exact"] = known["hi_exact"] = zone.exact
    return known


def _probes(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.metastore.spark.pruning.PruningProbe


class Rules:
    """The pruning rules over bounds that the oracle computed itself; `empty` gives them files without statistics."""

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

    def kept(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that it would read."""
        return _kept(self.spark, self.probe, self.files, predicates)


class Stored:
    """The pruning rules over the statistics that ANALYZE stored; files without statistics are read."""

    def __init__(self, spark: SparkSession, subject: Subject, location: str, uuid: str) -> None:
        self.spark = spark
        ddl = ddl_of(spark, subject.relation)
        self.probe = _probes(spark).open(spark._jsparkSession, ddl, f"{location}/_metastore", uuid)
        self.files = list(self.probe.paths())
        self.unknown = frozenset(subject.zones) - frozenset(self.files)

    def kept(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that it would read."""
        return [found | self.unknown for found in _kept(self.spark, self.probe, self.files, predicates)]


def _kept(spark: SparkSession, probe: Any, files: Sequence[str], predicates: Sequence[str]) -> list[frozenset[str]]:
    asked = spark._sc._gateway.new_array(spark._jvm.java.lang.String, len(predicates))
    for i, predicate in enumerate(predicates):
        asked[i] = predicate
    answers = probe.keptByAll(asked)
    return [frozenset(f for f, bit in zip(files, answer, strict=True) if bit == "1") for answer in answers]


class Queries:
    """Whole queries with the extension on: what EXPLAIN says that their scans read."""

    def __init__(self, spark: SparkSession, subject: Subject) -> None:
        self.spark = spark
        self.relation = subject.relation
        self.files = list(subject.zones)

    def kept(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that a query would read."""
        return [frozenset(path for path, read in self.decided(p).items() if read) for p in predicates]

    def skipped(self, predicates: Sequence[str]) -> list[frozenset[str]]:
        """Returns for every predicate the files that the Metastore, not Spark or the format, would skip."""
        return [frozenset(path for path, read in self.decided(p).items() if not read) for p in predicates]

    def decided(self, predicate: str) -> dict[str, bool]:
        """Returns for every file of a query's scan whether it is read; nothing where Spark needs no scan."""
        jvm: Any = self.spark._jvm
        query = f"SELECT * FROM {self.relation} WHERE {predicate}"
        try:
            rows = jvm.org.metastore.spark.explain.ExplainQuery.decisions(self.spark._jsparkSession, query)
        except Py4JJavaError:
            if self.plans_without_us(query):
                raise
            return dict.fromkeys(self.files, True)
        found = [rows.apply(i) for i in range(rows.size())]
        return {row.path().get(): row.kept() for row in found if row.path().isDefined()}

    def plans_without_us(self, query: str) -> bool:
        """Tells whether Spark can plan a query: it cannot hand a null of type binary to Iceberg."""
        self.spark.conf.set("spark.metastore.enabled", "false")
        try:
            self.spark.sql(query)._jdf.queryExecution().optimizedPlan()
        except Py4JJavaError:
            return False
        finally:
            self.spark.conf.unset("spark.metastore.enabled")
        return True
