"""What cannot be true of any data file: statistics that say so are set aside by every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.value_rendering import decimal_from_bytes
from metastore.format.zones import hash_identities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column


_ENCODINGS = ("long", "double", "binary")


def check_statistics(
    rows: pa.Table, columns: Sequence[Column], held: Iterable[int], files: pa.Table | None
) -> list[str]:
    """Contradictions in the rows of a `summary` or `table-summary`."""
    ordinals = rows["column"].to_numpy()
    known = np.isin(ordinals, np.fromiter(held, np.int64))
    checks: dict[str, Any] = {
        "a column that the object does not hold": ~known,
        "negative counts": _any(rows, [pc.less(rows[name], 0) for name in ("rows", "nulls", "nans", "distinct")]),
        **_among_counts_and_bounds(rows, columns),
        "bounds of another encoding than the column's": _misplaced(rows, columns, known),
        "more exact distinct values than rows": _true(
            pc.and_(pc.equal(rows["distinct_error"], 0.0), pc.greater(rows["distinct"], rows["rows"]))
        ),
    }
    if files is not None:
        checks |= _against_files(rows, files)
    return [f"{text} ({int(np.sum(found))})" for text, found in checks.items() if np.any(found)]


def find_contradictory_rows(rows: pa.Table, columns: Sequence[Column], files: int) -> NDArray[np.bool_]:
    """Rows of a `summary` of which nothing may be believed: who looks for values takes their data files for unknown."""
    places = rows["file"].to_numpy()
    wrong: NDArray[np.bool_] = (places < 0) | (places >= files)
    wrong |= _any(rows, [pc.less(rows[name], 0) for name in ("rows", "nulls", "nans")])
    for found in _among_counts_and_bounds(rows, columns).values():
        wrong |= found
    return wrong


def check_file_list(files: pa.Table) -> list[str]:
    """Contradictions in the rows of a `files` object."""
    ordinals = files["file"].to_numpy()
    checks = {
        "ordinals that are not 0, 1, 2, …": np.sort(ordinals) != np.arange(files.num_rows),
        "negative sizes or rows": _any(files, [pc.less(files[name], 0) for name in ("size", "rows")]),
    }
    return [f"{text} ({int(np.sum(found))})" for text, found in checks.items() if np.any(found)]


def check_identities(written: str | None, files: pa.Table) -> list[str]:
    """Contradictions between the rows of `files` and what its footer says to tell them by, if it does."""
    wrong = written is not None and written != hash_identities(files)
    return ["identities that are those of other data files"] if wrong else []


def check_zones(zones: pa.Table, expected: Sequence[pa.Table]) -> list[str]:
    """Contradictions between the rows of `zones` and what follows from the summaries of the block."""
    wanted = {(row["column"], row["zone"]): row for one in expected for row in one.to_pylist()}
    wrong = sum(wanted.get((row["column"], row["zone"])) != row for row in zones.to_pylist())
    return [f"a zone that is not that of its data files ({wrong})"] if wrong else []


def check_snapshot(listed: pa.Table, snapshot: Snapshot) -> list[str]:
    """Contradictions between a snapshot's entry and its list of data files."""
    problems = []
    if listed.num_rows != snapshot.files_total:
        problems.append(f"{listed.num_rows} data files where the snapshot has {snapshot.files_total}")
    deleted = pc.fill_null(listed["deleted_rows"], 0)
    if np.any(_true(pc.greater(deleted, listed["rows"]))):
        problems.append("more deleted rows than rows")
    return problems


def _among_counts_and_bounds(rows: pa.Table, columns: Sequence[Column]) -> dict[str, NDArray[np.bool_]]:
    missing = _missing(rows)
    return {
        "more nulls and NaN than rows": _true(pc.greater(missing, rows["rows"])),
        "bounds where there is no value": _true(pc.and_(_has_bounds(rows), pc.equal(missing, rows["rows"]))),
        "an upper bound below the lower": _inverted(rows, columns),
        "NaN as a bound": _any(rows, [pc.is_nan(rows[name]) for name in ("lo_double", "hi_double")]),
    }


def _against_files(rows: pa.Table, files: pa.Table) -> dict[str, Any]:
    count = files.num_rows
    places, columns = rows["file"].to_numpy(), rows["column"].to_numpy().astype(np.int64)
    inside = (places >= 0) & (places < count)
    rows_of_file = np.full(count + 1, -1, np.int64)
    ordinals = files["file"].to_numpy()
    sound = (ordinals >= 0) & (ordinals < count)
    rows_of_file[ordinals[sound]] = pc.fill_null(files["rows"], -1).to_numpy()[sound]
    expected = rows_of_file[np.where(inside, places, count)]
    counted = pc.fill_null(rows["rows"], -1).to_numpy()
    pairs = columns << 32 | places.astype(np.int64)
    return {
        "a data file that the block does not have": ~inside,
        "another number of rows than the data file": (expected >= 0) & (counted >= 0) & (expected != counted),
        "two rows for one column and data file": len(pairs) - len(np.unique(pairs)) > 0,
        "all values of a data file of which no object has any": _unlisted(rows, files),
    }


def _unlisted(rows: pa.Table, files: pa.Table) -> Any:
    """Rows that say their value list is complete, of data files that name no object with lists."""
    unnamed = files["file"].filter(pc.is_null(files["frequencies_name"])).to_numpy()
    complete = _true(pc.and_(pc.equal(rows["frequencies"], "complete"), pc.greater(rows["distinct"], 0)))
    return complete & np.isin(rows["file"].to_numpy(), unnamed)


def _missing(rows: pa.Table) -> pa.ChunkedArray:
    return pc.add(pc.fill_null(rows["nulls"], 0), pc.fill_null(rows["nans"], 0))


def _has_bounds(rows: pa.Table) -> pa.ChunkedArray:
    found = [pc.is_valid(rows[f"{side}_{encoding}"]) for side in ("lo", "hi") for encoding in _ENCODINGS]
    return pa.chunked_array([np.logical_or.reduce([one.to_numpy() for one in found])])


def _inverted(rows: pa.Table, columns: Sequence[Column]) -> Any:
    found = _any(rows, [pc.greater(rows[f"lo_{name}"], rows[f"hi_{name}"]) for name in ("long", "double")])
    signed = {
        i for i, column in enumerate(columns) if column.type.startswith("decimal") and column.encoding == "binary"
    }
    if not pc.any(pc.is_valid(rows["lo_binary"])).as_py():
        return found
    by_bytes = _true(pc.greater(rows["lo_binary"], rows["hi_binary"]))
    for place in np.flatnonzero(np.isin(rows["column"].to_numpy(), sorted(signed))) if signed else ():
        lo, hi = rows["lo_binary"][int(place)].as_py(), rows["hi_binary"][int(place)].as_py()
        by_bytes[place] = lo is not None and hi is not None and decimal_from_bytes(lo) > decimal_from_bytes(hi)
    return found | by_bytes


def _misplaced(rows: pa.Table, columns: Sequence[Column], known: Any) -> Any:
    found = np.zeros(rows.num_rows, bool)
    ordinals = rows["column"].to_numpy()
    for encoding in _ENCODINGS:
        others = [i for i, column in enumerate(columns) if column.encoding != encoding]
        has = _any(rows, [pc.is_valid(rows[f"{side}_{encoding}"]) for side in ("lo", "hi")])
        found |= known & has & np.isin(ordinals, others)
    return found


def _any(rows: pa.Table, conditions: Sequence[pa.ChunkedArray]) -> Any:
    found = np.zeros(rows.num_rows, bool)
    for condition in conditions:
        found |= _true(condition)
    return found


def _true(condition: pa.ChunkedArray) -> Any:
    return np.array(pc.fill_null(condition, False), bool)  # noqa: FBT003 - pyarrow's signature
