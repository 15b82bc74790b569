"""What all ways of showing an answer share: which columns, how a value reads, one line about the whole."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.answers import Answer

_SHOWN = {
    "summary": (
        *("column_name", "column_type", "min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75"),
        "null_percentage",
    ),
    "files": ("path", "size", "rows", "deleted_rows", "partition", "analyzed", "columns_analyzed"),
    "columns": ("path", "column_name", "min", "max", "rows", "null_count", "nan_count", "distinct"),
    "config": ("name", "value", "source"),
}
_HEADS = {
    "column_name": "column",
    "column_type": "type",
    "approx_unique": "distinct",
    "null_percentage": "null %",
    "null_count": "nulls",
    "nan_count": "NaN",
    "deleted_rows": "deleted",
    "columns_analyzed": "columns",
    "analyzed_at": "analyzed",
    "files_total": "of files",
}
_LAST_OF_SUMMARY = "analyzed_at"
_LESS_WANTED = ("std", "q25", "q75", "avg", "q50", "nan_count", "deleted_rows")
_SIZES = ("size", "size_bytes", "live_size_bytes")
_LONGEST = 40
_SHORTEST, _ENOUGH = 8, 20
GAP = 2
ELLIPSIS = "…"


def shown_columns(answer: Answer) -> list[str]:
    """The columns that people see, without those that say nothing; `to_dict()` and `--json` have all."""
    wanted = [name for name in _SHOWN.get(answer.kind, answer.columns) if name in answer.columns]
    if answer.kind == "summary":
        wanted += answer.columns[answer.columns.index(_LAST_OF_SUMMARY) + 1 :]  # user-defined statistics
    if answer.kind != "summary" or not answer.rows:
        return wanted
    return [name for name in wanted if any(row[name] is not None for row in answer.rows) or name in ("min", "max")]


def fitting(answer: Answer, rows: int, width: int | None) -> list[str]:
    """Those of the shown columns that fit a width; what is told less often goes first."""
    names = shown_columns(answer)
    sizes = widths(answer, names, rows, None)
    sizes |= {name: min(size, _ENOUGH) for name, size in sizes.items() if not is_number(answer, name)}
    for name in _LESS_WANTED:
        if width is None or _total(sizes, names) <= width:
            break
        names = [one for one in names if one != name]
    return names


def widths(answer: Answer, names: Sequence[str], rows: int, limit: int | None) -> dict[str, int]:
    """The width of each column; where all do not fit, texts become shorter, numbers never."""
    shown = answer.rows[:rows]
    sizes = {name: max([len(head(name)), *(len(brief(name, value_of(row, name))) for row in shown)]) for name in names}
    least = {name: max(len(head(name)), _SHORTEST) for name in names if not is_number(answer, name)}
    while limit is not None and _total(sizes, names) > limit:
        longest = max((name for name in least if sizes[name] > least[name]), key=lambda one: sizes[one], default=None)
        if longest is None:
            break
        sizes[longest] -= 1
    return sizes


def _total(sizes: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(sizes[name] + GAP for name in names)


def head(name: str) -> str:
    """The heading of a column."""
    return _HEADS.get(name, name.replace("_", " "))


def is_number(answer: Answer, name: str) -> bool:
    """Whether a column is set to the right."""
    values = [row[name] for row in answer.rows if row[name] is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def cell(name: str, value: Any) -> str:
    """A value as people read it: digits in groups of three, sizes in kB and MB, no more digits than tell something."""
    write = next((write for kind, write in _WRITERS if isinstance(value, kind)), str)
    return size(value) if name in _SIZES and isinstance(value, int) else write(value)


def value_of(row: Mapping[str, Any], name: str) -> Any:
    """A value to be shown; the mean of dates, a number of days, tells people nothing."""
    of_dates = str(row.get("column_type")).startswith(("date", "timestamp"))
    return None if of_dates and name in ("avg", "std") else row[name]


def brief(name: str, value: Any) -> str:
    """A cell of limited length: of a path its end tells more, of a text its beginning."""
    text = cell(name, value).replace("\n", "\\n").replace("\t", "\\t")
    if name == "path":
        return text.rsplit("/", 1)[-1]
    return cut(text, _LONGEST)


def cut(text: str, length: int) -> str:
    """A text of at most that length, its end replaced by an ellipsis.

    Example:
        >>> cut("abcdef", 4), cut("abc", 4)
        ('abc…', 'abc')
    """
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def number(value: float) -> str:
    """A number with four significant digits, or all of its integer part.

    Example:
        >>> [number(x) for x in (0.0123456, 25.5052, 152992.0, 1e-9, 3.0)]
        ['0.01235', '25.51', '152,992', '1e-09', '3']
    """
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return str(value)
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def size(value: int) -> str:
    """A number of bytes.

    Example:
        >>> size(999), size(40_000), size(3_200_000)
        ('999 B', '40.0 kB', '3.2 MB')
    """
    scaled = float(value)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(scaled) < 1000 or unit == "TB":
            break
        scaled /= 1000
    return f"{value} B" if unit == "B" else f"{scaled:.1f} {unit}"


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (type(None), lambda _: ""),
    (bool, lambda value: "yes" if value else "no"),
    (int, lambda value: f"{value:,}"),
    (float, number),
    (dict, lambda value: "/".join(f"{key}={part}" for key, part in value.items())),
    (datetime, lambda value: f"{value:%Y-%m-%d %H:%M:%S}"),
)


def caption(answer: Answer) -> str:
    """One line about the whole: what it is about, how much it covers, whether it is still true."""
    parts = [answer.subject] if answer.subject else []
    if answer.kind == "summary" and len(answer):
        first = answer[0]
        parts += [f"{first['count']:,} rows"] if first["count"] is not None else []
        parts += [_coverage(first["files"], first["files_total"])]
    if answer.snapshot is not None:
        state = {True: "current", False: "the table has changed since", None: "whether current is not known"}
        parts.append(f"snapshot {answer.snapshot} ({state[answer.current]})")
    if answer.analyzed_at is not None:
        parts.append(f"analyzed {answer.analyzed_at:%Y-%m-%d %H:%M} UTC")
    return ", ".join(parts)


def _coverage(files: int | None, total: int | None) -> str:
    noun = "file" if total == 1 else "files"
    return f"{total:,} {noun}" if files == total else f"{files:,} of {total:,} {noun}"
