"""The rules of contract/rules.json, each with the rows of a data file about which its filters say something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.contract import read_contract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NULL, NAN = "NULL", "double('NaN')"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule, and a data file in which some of its filters match no row.

    Attributes:
        name: The conditions, as the documentation shows them.
        columns: The type and the values of each column, in SQL; all but NULL and NaN are sorted. A column whose name is
            no identifier is an expression with statistics of its own.
        skips: Filters that match no row: the file is left out.
        stays: Filters that match a row.
        spark: What Spark's planner needs to leave the file out: its bounds, or a list of all values.
        python: What `prune` needs; None if it has no such rule.
    """

    name: str
    columns: Mapping[str, Mapping[str, Any]]
    skips: Sequence[str]
    stays: Sequence[str]
    spark: str
    python: str | None

    @property
    def filters(self) -> Sequence[str]:
        """All filters."""
        return [*self.skips, *self.stays]

    @property
    def schema(self) -> str:
        """The columns in Spark's DDL."""
        return ", ".join(f"{name} {column['type']}" for name, column in self.stored.items())

    @property
    def stored(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns without expressions."""
        return {name: column for name, column in self.columns.items() if name.isidentifier()}

    @property
    def rows(self) -> str:
        """A query that returns the rows."""
        columns = [f"CAST({name} AS {column['type']}) AS {name}" for name, column in self.stored.items()]
        rows = zip(*(column["values"] for column in self.stored.values()), strict=True)
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"SELECT {', '.join(columns)} FROM VALUES {values} AS ({', '.join(self.stored)})"

    @property
    def case(self) -> dict[str, Any]:
        """The rule as a case, as tests/cases/pruning.json has them."""
        return {
            "name": self.name,
            "schema": self.schema,
            "zone": self.statistics(self.spark),
            "skip": self.skips,
            "stays": self.stays,
        }

    def statistics(self, needed: str) -> dict[str, Any]:
        """The statistics of the file, with lists of all values if they are needed."""
        columns = {name: _column_statistics(column["values"]) for name, column in self.columns.items()}
        for name, statistics in columns.items():
            if needed == "bounds":
                del statistics["values"]
            if name not in self.stored:
                statistics["type"] = self.columns[name]["type"]
        rows = len(next(iter(self.columns.values()))["values"])
        return {"rows": rows, "columns": columns}


def _column_statistics(values: Sequence[str]) -> dict[str, Any]:
    plain = [value for value in values if value not in (NULL, NAN)]
    statistics: dict[str, Any] = {"nulls": values.count(NULL), "nans": values.count(NAN), "values": plain}
    if plain:
        statistics |= {"lo": plain[0], "hi": plain[-1]}
    return statistics


def _read_rules() -> list[Rule]:
    rules = []
    for section in read_contract("rules"):
        for entry in section["rules"]:
            rule = Rule(
                name=f"{section['of']}: {entry['rule']}",
                columns=section["columns"],
                skips=entry["skips"],
                stays=entry["stays"],
                spark=entry["spark"],
                python=entry.get("python"),
            )
            rules.append(rule)
    return rules


RULES = _read_rules()
