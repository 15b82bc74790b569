"""Random files: columns of all scalar types, structs and collections, in every shape that bounds can take."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from oracle.columns import ODD_NAMES, Leaf, anything, arrow_array, ranked, specials

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from random import Random

PADDING = "padding"
SHAPES = ("clustered", "clustered", "sorted", "narrow", "constant", "special", "wild", "mixed", "mixed")
COLLECTIONS = {
    "list of int": pa.list_(pa.int32()),
    "map of string to int": pa.map_(pa.string(), pa.int32()),
    "list of struct": pa.list_(pa.struct([("x", pa.int64())])),
}


@dataclass(frozen=True)
class Design:
    """The columns of a random table; `shapes` says how the values of a leaf are spread over files.

    `rows` are the lengths of files; `padding` bytes that nobody asks about make a file large enough for filters.
    """

    leaves: tuple[Leaf, ...]
    shapes: dict[Leaf, str]
    collections: dict[str, str] = field(default_factory=dict)
    rows: tuple[int, ...] = (1, 2, 5, 12, 12, 30)
    padding: int = 0


def unsorted_design(design: Design, rng: Random) -> Design:
    """The same columns for large files, each with values of the whole range: bounds tell little of them."""
    shapes = {leaf: rng.choice(("spread", "wild", "mixed")) for leaf in design.leaves}
    return replace(design, shapes=shapes, rows=(90, 150, 300), padding=800_000)


def random_design(rng: Random, scalars: Sequence[str], width: int = 10) -> Design:
    """Draws columns: every table has some of each family, a struct of structs, odd names and a collection."""
    types = [t for t in ("tinyint", "smallint") if t in scalars]  # only directories of Parquet have them
    types += [rng.choice(scalars) for _ in range(width - len(types))]
    names = [f"c{i}" for i in range(width)]
    for position, odd in zip(rng.sample(range(width), 3), rng.sample(ODD_NAMES, 3), strict=True):
        names[position] = odd
    leaves = [Leaf((name,), t) for name, t in zip(names, types, strict=True)]
    leaves += [Leaf(("s", "a"), rng.choice(scalars)), Leaf(("s", "in.ner"), rng.choice(scalars))]
    leaves += [Leaf(("s", "n", "x"), rng.choice(scalars)), Leaf(("file_no",), "int")]
    shapes = {leaf: rng.choice(SHAPES) for leaf in leaves}
    return Design(tuple(leaves), shapes, {"many": rng.choice(list(COLLECTIONS))})


def _values(leaf: Leaf, shape: str, number: int, rows: int, rng: Random) -> list[Any]:
    base = number * 3
    odd = specials(leaf.type)
    draw = {
        "clustered": lambda: ranked(leaf.type, base + rng.randint(0, 4)),
        "sorted": lambda: ranked(leaf.type, base + rng.randint(0, 2)),
        "narrow": lambda: ranked(leaf.type, rng.randint(0, 12)),
        "special": lambda: rng.choice(odd),
        "spread": lambda: ranked(leaf.type, rng.randint(0, 2000)),
        "wild": lambda: anything(leaf.type, rng),
        "mixed": lambda: rng.choice([ranked(leaf.type, base), rng.choice(odd), anything(leaf.type, rng)]),
    }
    if shape == "constant":
        return [rng.choice([ranked(leaf.type, base % 9), rng.choice(odd)])] * rows
    values = [draw[shape]() for _ in range(rows)]
    if shape in {"clustered", "sorted"} and rng.random() < 0.12:
        values[rng.randrange(rows)] = rng.choice(odd)
    return sorted(values, key=repr) if rng.random() < 0.2 else values


def _with_nulls(values: list[Any], rng: Random) -> list[Any]:
    share = rng.choice([0, 0, 0, 0.05, 0.5, 1])
    return [None if rng.random() < share else v for v in values]


def random_file(design: Design, number: int, rng: Random) -> pa.Table:
    """Draws one file of a design; fields of a struct are null where their parent is."""
    rows = rng.choice(design.rows)
    drawn: dict[Leaf, list[Any]] = {
        leaf: _with_nulls(_values(leaf, design.shapes[leaf], number, rows, rng), rng) for leaf in design.leaves
    }
    drawn[Leaf(("file_no",), "int")] = [number] * rows
    columns: dict[str, pa.Array] = {}
    for leaf in design.leaves:
        if len(leaf.path) == 1:
            columns[leaf.path[0]] = arrow_array(leaf.type, drawn[leaf])
    columns["s"] = _struct({k.path[1:]: (k.type, v) for k, v in drawn.items() if k.path[0] == "s"}, rows, rng)
    for name, kind in design.collections.items():
        columns[name] = _collection(kind, rows, rng)
    if design.padding:
        columns[PADDING] = pa.array([rng.randbytes(design.padding // rows) for _ in range(rows)], pa.binary())
    return pa.table(columns)


def _struct(fields: dict[tuple[str, ...], tuple[str, list[Any]]], rows: int, rng: Random) -> pa.Array:
    absent = pa.array([rng.random() < 0.15 for _ in range(rows)])
    names = list(dict.fromkeys(path[0] for path in fields))
    arrays = []
    for name in names:
        if (name,) in fields:
            arrays.append(arrow_array(*fields[(name,)]))
        else:
            inner = {path[1:]: v for path, v in fields.items() if path[0] == name}
            arrays.append(_struct(inner, rows, rng))
    return pa.StructArray.from_arrays(arrays, names=names, mask=absent)


def _collection(kind: str, rows: int, rng: Random) -> pa.Array:
    def draw_value() -> Any:
        size = rng.choice([0, 1, 3])
        if kind == "list of int":
            return [rng.choice([None, rng.randint(0, 9)]) for _ in range(size)]
        if kind == "list of struct":
            return [{"x": rng.randint(0, 9)} for _ in range(size)]
        return [(f"k{i}", rng.randint(0, 9)) for i in range(size)]

    return pa.array([None if rng.random() < 0.2 else draw_value() for _ in range(rows)], type=COLLECTIONS[kind])


def write_files(design: Design, count: int, folder: Path, rng: Random, *, int96: bool = False) -> None:
    """Writes files of a design with pyarrow, each with its own encodings, row groups and page versions."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        table = random_file(design, number, rng)
        options: dict[str, Any] = {
            "use_dictionary": rng.random() < 0.5,
            "row_group_size": rng.choice([3, 1000]),
            "data_page_version": rng.choice(["1.0", "2.0"]),
            "store_decimal_as_integer": rng.random() < 0.5,
            "write_statistics": rng.random() < 0.8,
            "compression": rng.choice(["snappy", "zstd", "none"]),
            "use_deprecated_int96_timestamps": int96,
        }
        pq.write_table(table, folder / f"part-{number:04d}.parquet", **options)
