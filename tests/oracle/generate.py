"""Random predicates over a subject: literals from its data, from beside its bounds, and from the odd corners."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from oracle.columns import BYTES, DECIMALS, FLOATS, INTEGER_BITS, TIMES, Leaf, is_nan, neighbours, ranked, specials
from oracle.literals import EPOCH, literal, loose, quoted
from oracle.predicates import And, Between, Compare, In, Is, IsNull, Like, Monotone, Not, Opaque, Or, Predicate

if TYPE_CHECKING:
    from random import Random

    from oracle.tables import Subject

COMPARISONS = ("=", "<=>", "<", "<=", ">", ">=", "<>")
ORDERED = ("=", "<", "<=", ">", ">=", "<>")


def base_type(name: str) -> str:
    """Returns the family that a type's literals are drawn from (evolved decimals have other precisions)."""
    if name.startswith("decimal") and name not in DECIMALS:
        return next(t for t in DECIMALS if DECIMALS[t][1] == int(name.rstrip(")").split(",")[1]))
    return name


class Generator:
    """Draws predicates; `ansi` keeps out what would end the query with a run-time error."""

    def __init__(self, subject: Subject, rng: Random, *, ansi: bool) -> None:
        self.subject = subject
        self.rng = rng
        self.ansi = ansi
        self.samples = {leaf: subject.sample(leaf) for leaf in subject.leaves}

    def predicate(self) -> Predicate:
        """Returns a random tree."""
        roll = self.rng.random()
        return self.leaf() if roll < 0.55 else self.tree(1 if roll < 0.85 else 3)

    def tree(self, depth: int) -> Predicate:
        """Returns a tree of at most this depth."""
        if depth == 0 or self.rng.random() < 0.2:
            return self.leaf()
        kind = self.rng.choice(["and", "and", "or", "or", "not"])
        if kind == "not":
            return Not(self.tree(depth - 1))
        left, right = self.tree(depth - 1), self.tree(depth - 1)
        return And(left, right) if kind == "and" else Or(left, right)

    def leaf(self) -> Predicate:
        """Returns one comparison, of any kind that the drawn column allows."""
        leaf = self.rng.choice(self.subject.leaves)
        kinds = [
            self.compare,
            self.compare,
            self.compare,
            self.within,
            self.member,
            self.null,
            self.mixed,
            self.columns,
        ]
        if leaf.type == "boolean":
            kinds += [Is] * 2
        if leaf.type == "string":
            kinds += [self.like] * 3
        if self.rng.random() < 0.02 and self.subject.collections:
            return self.collection()
        return self.rng.choice([*kinds, self.monotone, self.function])(leaf)

    def value(self, leaf: Leaf, nulls: float = 0.03) -> Any:
        """Draws a literal value for a column."""
        roll = self.rng.random()
        if roll < nulls:
            return None
        plain_type = base_type(leaf.type)
        present = [v for v in self.samples[leaf] if v is not None]
        if not present or roll < 0.12:
            return self.rng.choice(specials(plain_type))
        if roll < 0.25:
            return ranked(plain_type, self.rng.randint(0, 130))
        value = self.rng.choice(present)
        if roll < 0.32:
            return self._absent(leaf, value)
        if roll < 0.5:
            zone = self.rng.choice(list(self.subject.zones.values()))[leaf]
            value = self.rng.choice([zone.lo, zone.hi]) if zone.present and zone.hi is not None else value
        beside = neighbours(plain_type, value) if roll > 0.75 else []
        return self.rng.choice(beside) if beside else value

    def _absent(self, leaf: Leaf, otherwise: Any) -> Any:
        """Draws a value of some file that another file's bounds enclose without holding it."""
        zone = self.rng.choice(list(self.subject.zones.values()))[leaf]
        if not zone.present or zone.hi is None or not zone.values:
            return otherwise
        chosen = [v for v in self.rng.choices(self.samples[leaf], k=8) if v is not None and not is_nan(v)]
        return next((v for v in chosen if zone.lo < v < zone.hi and v not in zone.values), otherwise)

    def compare(self, leaf: Leaf) -> Predicate:
        """Returns a comparison with a literal of the column's type."""
        return Compare(leaf, self.rng.choice(COMPARISONS), self.value(leaf), flipped=self.rng.random() < 0.1)

    def within(self, leaf: Leaf) -> Predicate:
        """Returns [NOT] BETWEEN, often over a small range."""
        lo, hi = self.value(leaf, 0.02), self.value(leaf, 0.02)
        if None not in (lo, hi) and not is_nan(lo) and not is_nan(hi) and hi < lo and self.rng.random() < 0.8:
            lo, hi = hi, lo
        return Between(leaf, lo, hi, negated=self.rng.random() < 0.35)

    def member(self, leaf: Leaf) -> Predicate:
        """Returns [NOT] IN, with one value, a few, or so many that Spark builds a set."""
        size = self.rng.choice([1, 2, 3, 5, 12])
        values = tuple(self.value(leaf, 0.05) for _ in range(size))
        return In(leaf, values, negated=self.rng.random() < 0.4)

    def null(self, leaf: Leaf) -> Predicate:
        """Returns IS [NOT] NULL."""
        return IsNull(leaf, negated=self.rng.random() < 0.5)

    def like(self, leaf: Leaf) -> Predicate:
        """Returns [NOT] LIKE: a prefix, with an escape, exact, or with something behind the wildcard."""
        start = self.value(leaf, 0)
        start = start[: self.rng.choice([1, 2, 4, 64, 65, 200])] if self.rng.random() < 0.7 else start
        prefix = start.decode("utf-8", "ignore")
        escape = self.rng.choice(["", "", "", "!", "/"])
        mark = escape or "\\"
        written = "".join(mark + c if c in {"%", "_", mark} else c for c in prefix)
        tail = self.rng.choice(["%", "%", "%", "%", "", "%a", "_%", "_"])
        is_whole = tail == "%"
        return Like(
            leaf=leaf,
            pattern=written + tail,
            prefix=prefix.encode(),
            is_only_prefix=is_whole,
            negated=self.rng.random() < 0.4,
            escape=escape,
        )

    def mixed(self, leaf: Leaf) -> Predicate:
        """Returns a comparison with a literal of another type: Spark inserts the casts."""
        value = self.value(leaf)
        if leaf.type == "string" and not self.ansi and self.rng.random() < 0.5:
            other = self.rng.choice(
                ["5", "1.5", "DATE '2020-01-03'", "TIMESTAMP '2020-01-03 10:00:00'", "true", "X'61'"]
            )
        elif leaf.type in BYTES and self.ansi:
            other = literal(leaf.type, value)
        else:
            other = loose(base_type(leaf.type), value, self.rng)
        op = self.rng.choice(COMPARISONS)
        return Opaque(f"{leaf.sql} {op} {other}", leaf.type, "literal of another type")

    def columns(self, leaf: Leaf) -> Predicate:
        """Returns a comparison of two columns, of one type where there are two."""
        same_type = [x for x in self.subject.leaves if x.type == leaf.type and x != leaf] or [leaf]
        family = next((f for f in (tuple(INTEGER_BITS), FLOATS, TIMES) if leaf.type in f), ())
        wider = [x for x in self.subject.leaves if x.type in family]
        other = self.rng.choice(wider if wider and self.rng.random() < 0.4 else same_type)
        return Opaque(f"{leaf.sql} {self.rng.choice(COMPARISONS)} {other.sql}", leaf.type, "column")

    def collection(self) -> Predicate:
        """Returns a predicate on an array or a map."""
        name = "`" + self.rng.choice(self.subject.collections) + "`"
        return Opaque(
            self.rng.choice([f"{name} IS NULL", f"size({name}) > 1", f"{name} IS NOT NULL"]), "collection", "function"
        )

    def monotone(self, leaf: Leaf) -> Predicate:
        """Returns a comparison of an expression that grows with the column, or of anything where there is none."""
        op = self.rng.choice(ORDERED)
        value = self.value(leaf, 0)
        if leaf.type in {"tinyint", "smallint", "int"}:
            to = self.rng.choice(["bigint", "double", "decimal(38,5)"])
            return self._widening_cast(leaf, to, op, value)
        if leaf.type == "float" and not is_nan(value):
            return self._widening_cast(leaf, "double", op, value)
        if leaf.type == "date":
            when = (EPOCH + timedelta(days=value)).year
            return Monotone(
                leaf=leaf,
                expression=f"year({leaf.sql})",
                image=lambda v: (EPOCH + timedelta(days=v)).year,
                op=op,
                value=when,
                written=str(when),
                label="year of date",
            )
        if leaf.type == "string" and value.isascii() and value:
            n = self.rng.choice([1, 2, 4])
            return self._substring(leaf, n, value[:n])
        return self.compare(leaf)

    @staticmethod
    def _widening_cast(leaf: Leaf, to: str, op: str, value: object) -> Predicate:
        written = literal("float", value) if leaf.type == "float" else value
        return Monotone(
            leaf=leaf,
            expression=f"CAST({leaf.sql} AS {to})",
            image=lambda v: v,
            op=op,
            value=value,
            written=f"CAST({written} AS {to})",
            label="widening cast",
        )

    @staticmethod
    def _substring(leaf: Leaf, n: int, value: bytes) -> Predicate:
        return Monotone(
            leaf=leaf,
            expression=f"substring({leaf.sql}, 1, {n})",
            image=lambda v: v[:n] if v.isascii() else None,
            op="=",
            value=value,
            written=quoted(value.decode()),
            label="substring",
        )

    def function(self, leaf: Leaf) -> Predicate:
        """Returns a comparison of a function or a cast of the column, which no statistic decides."""
        op = self.rng.choice(COMPARISONS)
        text = self.rng.choice(self._functions(leaf))
        label = "cast" if "CAST(" in text.split("#")[0] else "function"
        return Opaque(text.replace("#", op), leaf.type, label)

    def _functions(self, leaf: Leaf) -> list[str]:
        c, value = leaf.sql, self.value(leaf, 0)
        written = literal(leaf.type, value)
        choices = [f"coalesce({c}, {written}) # {written}", f"CAST({c} AS string) # CAST({written} AS string)"]
        choices += [
            f"if({c} IS NULL, true, {c} # {written})",
            f"CAST({c} AS string) # '5'",
            f"nullif({c}, {written}) # {written}",
            f"coalesce({c} # {written}, true)",
            f"NOT coalesce({c} # {written}, false)",
            f"if({c} # {written}, 'a', 'b') = 'b'",
            f"CASE WHEN {c} # {written} THEN 1 WHEN {c} IS NULL THEN 2 ELSE 3 END IN (2, 3)",
            f"NOT (if({c} # {written}, {c} = {written}, {c} IS NULL))",
        ]
        choices += self._numbers(leaf, written) if _is_number(leaf) else []
        choices += self._times(leaf, written) if leaf.type == "date" or leaf.type in TIMES else []
        return choices + (self._texts(leaf, written, value) if leaf.type == "string" else [])

    def _numbers(self, leaf: Leaf, written: str) -> list[str]:
        c = leaf.sql
        choices = [
            f"CAST({c} AS double) # CAST({written} AS double)",
            f"{c} / 2 # {written}",
            f"{c} * 1.5D # {written}",
        ]
        choices += [f"{c} + 2.5D # {written}", f"round(CAST({c} AS double), 1) # CAST({written} AS double)"]
        choices += [f"{c} * 0.1BD # {written}", f"2 * CAST({c} AS double) - 1 # {written}", f"floor({c}) # {written}"]
        if leaf.type in INTEGER_BITS:
            number = self.rng.choice(["5", "7", "-3", "07", "127", "1000"])
            choices += [f"CAST({c} AS string) IN ('{number}', {written})", f"{c} div 7 # {written}"]
            choices += [f"from_unixtime({c}, 'yyyy-MM-dd') # '1970-01-01'", f"CAST({c} AS timestamp) # timestamp(5)"]
        if self.ansi:
            return choices
        choices += [f"{c} + 1 # {written}", f"-{c} # {written}", f"{c} * 2 # {written}", f"abs({c}) # {written}"]
        choices += [f"CAST({c} AS tinyint) # 5", f"CAST({c} AS int) # 5", f"{c} % 8 # 2", f"2147483647 - {c} # 5"]
        choices += [f"CAST({c} AS float) # CAST({written} AS float)", f"CAST({c} AS decimal(7,1)) # 5.5"]
        choices += [f"CAST({c} AS decimal(38,0)) # 5", f"{c} * -3 # {written}", f"round({c}, -1) # {written}"]
        return [*choices, f"CAST({c} AS bigint) # {written}", f"ceil({c} / 8) # 2", f"bround({c}) # {written}"]

    def _times(self, leaf: Leaf, written: str) -> list[str]:
        c = leaf.sql
        form = self.rng.choice(["yyyy", "yyyyMM", "yyyy-MM-dd", "yyyy/MM/dd HH", "yyyy-MM-dd HH:mm:ss"])
        choices = [f"year({c}) # year({written})", f"CAST({c} AS date) # CAST({written} AS date)", f"month({c}) # 5"]
        choices += [f"date_trunc('MONTH', {c}) # date_trunc('MONTH', {written})", f"CAST({c} AS timestamp) # {written}"]
        choices += [f"CAST({c} AS timestamp_ntz) # {written}", f"hour({c}) # 1"]
        choices += [f"trunc({c}, 'YEAR') # trunc({written}, 'YEAR')", f"quarter({c}) # quarter({written})"]
        choices += [f"date_format({c}, '{form}') # date_format({written}, '{form}')"] * 3
        choices += [f"CAST({c} AS string) LIKE concat(left(CAST({written} AS string), 7), '%')"]
        choices += [f"year({c}) = year({written}) AND month({c}) # month({written})", f"day({c}) # day({written})"]
        choices += [f"dayofyear({c}) # dayofyear({written})", f"unix_timestamp({c}) # unix_timestamp({written})"]
        if leaf.type == "timestamp":
            choices += [f"CAST({c} AS {to}) # CAST({written} AS {to})" for to in ("bigint", "double")]
        return choices + [f"date_add(CAST({c} AS date), 1) # CAST({written} AS date)"] * (not self.ansi)

    def _texts(self, leaf: Leaf, written: str, value: bytes) -> list[str]:
        c = leaf.sql
        start = "".join(a for a in value[:3].decode("utf-8", "ignore") if a.isalnum())
        choices = [f"upper({c}) # upper({written})", f"length({c}) # 3", f"startswith({c}, {written})"]
        choices += [f"concat({c}, 'a') # {written}", f"substring({c}, 1, 3) # substring({written}, 1, 3)"]
        choices += [f"left({c}, 2) # left({written}, 2)", f"trim({c}) # {written}", f"contains({c}, 'a')"]
        choices += [f"endswith({c}, 'a')", f"{c} RLIKE 'a.*'", f"try_cast({c} AS int) # 10"]
        choices += [f"{c} RLIKE '^{start}{ending}'" for ending in ("", ".*", "?x", "*", "|b", "$")]
        return [
            *choices,
            f"try_cast({c} AS date) # DATE '2020-01-01'",
            f"CAST({c} AS binary) # CAST({written} AS binary)",
        ]


def _is_number(leaf: Leaf) -> bool:
    return leaf.type in INTEGER_BITS or leaf.type in FLOATS or leaf.type.startswith("decimal")
