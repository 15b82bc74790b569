"""The three questions of the demonstration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from metastore.demo.tpch_tables import LINEITEM, ORDERS

_YEAR = 1996


@dataclass(frozen=True, kw_only=True)
class Question:
    """A query and its purpose.

    Attributes:
        title: The purpose.
        select: The SELECT list.
        rows: The rows that it reads, as FROM and WHERE.
        group: The columns of GROUP BY; empty for none.
        explanation: The statistics of the Metastore that the table's own metadata lacks.
        where: A short form of the condition for people; empty if the real one is short.
    """

    title: str
    select: str
    rows: str
    group: str
    explanation: str
    where: str = ""

    @property
    def sql(self) -> str:
        """Return the query."""
        return self._sql(self.rows)

    @property
    def shown(self) -> str:
        """Return the query in a short form for people."""
        if not self.where:
            return self.sql
        tables, _, _ = self.rows.partition("\nWHERE")
        return self._sql(f"{tables}\nWHERE {self.where}")

    def _sql(self, rows: str) -> str:
        query = f"SELECT {self.select}\n{rows}"
        if self.group:
            query += f"\nGROUP BY {self.group}"
        return query


def _working_days() -> list[date]:
    days = (date(_YEAR, 1, 1) + timedelta(days=i) for i in range(366))
    return [day for day in days if day.isoweekday() <= 5]


_DAYS = _working_days()
_LIST = ", ".join(f"DATE'{day}'" for day in _DAYS)

QUESTIONS = (
    Question(
        title="A long list: lines shipped on working days of 1996",
        select="l_shipmode, count(*) AS lines, sum(l_extendedprice) AS revenue",
        rows=f"FROM {LINEITEM}\nWHERE l_shipdate IN ({_LIST})",
        group="l_shipmode",
        where=f"l_shipdate IN (DATE'{_DAYS[0]}', DATE'{_DAYS[1]}', ... {len(_DAYS)} dates)",
        explanation="Rows lie in the order of shipping, so few files hold that year. Iceberg knows that too, but gives "
        "up on lists of more than 200 values, as dashboards like to send them.",
    ),
    Question(
        title="A long text: orders by the address of their page",
        select="count(*) AS orders, sum(o_totalprice) AS revenue",
        rows=f"FROM {ORDERS}\nWHERE o_page LIKE 'https://shop.example/orders/1995/03/%'",
        group="",
        explanation="Iceberg keeps the first 16 characters of a text, and all of these begin alike; the Metastore "
        "keeps 64 bytes.",
    ),
    Question(
        title="A join: what one clerk sold",
        select="o_page, o_orderdate, o_orderpriority, o_comment, sum(l_extendedprice * (1 - l_discount)) AS revenue",
        rows=f"FROM {ORDERS} JOIN {LINEITEM} ON o_orderkey = l_orderkey\nWHERE o_clerk = 'Clerk#000000042'",
        group="o_page, o_orderdate, o_orderpriority, o_comment",
        explanation="Clerks are in every file, so every file is read. But how many clerks there are is known, hence "
        "how few orders one of them has: Spark sends these to the lines instead of shuffling and sorting both tables.",
    ),
)
