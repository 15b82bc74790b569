"""The three questions of the demonstration."""

from __future__ import annotations

from dataclasses import dataclass

from metastore._demo.data import LINEITEM, ORDERS


@dataclass(frozen=True)
class Question:
    """A query and what it is asked for.

    Attributes:
        title: What the query is after.
        rows: The rows that it looks at, as FROM and WHERE.
        select: What it makes of them.
        group: Column that it groups by, empty for none.
        why: What the Metastore knows that the table's own metadata does not.
    """

    title: str
    rows: str
    select: str
    group: str
    why: str

    @property
    def sql(self) -> str:
        """The query."""
        tail = f"\nGROUP BY {self.group}" if self.group else ""
        return f"SELECT {self.select}\n{self.rows}{tail}"


QUESTIONS = (
    Question(
        title="Finished lines among those shipped since June 1995",
        rows=f"FROM {LINEITEM}\nWHERE l_shipdate >= DATE'1995-06-01' AND l_linestatus <> 'O'",
        select="l_shipmode, count(*) AS lines, sum(l_extendedprice) AS revenue",
        group="l_shipmode",
        why="In all later files every line is open: the only value of l_linestatus there is 'O'. "
        "Iceberg's metadata holds the same bounds, but `<>` is not a question it answers from them.",
    ),
    Question(
        title="Orders by the address of their page",
        rows=f"FROM {ORDERS}\nWHERE o_page LIKE 'https://shop.example/orders/1995/03/%'",
        select="count(*) AS orders, sum(o_totalprice) AS revenue",
        group="",
        why="Iceberg keeps 16 bytes of a text, and all of these begin alike; the Metastore keeps 64.",
    ),
    Question(
        title="What one clerk sold: a join",
        rows=f"FROM {ORDERS} JOIN {LINEITEM} ON o_orderkey = l_orderkey\nWHERE o_clerk = 'Clerk#000000042'",
        select="o_orderpriority, count(*) AS lines, sum(l_extendedprice) AS revenue",
        group="o_orderpriority",
        why="Clerks are in every file, so every file is read. But the number of clerks is known, hence how few orders "
        "one of them has: Spark sends these to the lines instead of shuffling and sorting both tables.",
    ),
)
