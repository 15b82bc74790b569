"""What the reading verbs answer with: small immutable tables that show themselves.

An answer is a sequence of rows. It prints as text, renders in notebooks and terminals, and converts to Arrow, pandas
and plain Python. Values of columns (minimum, maximum, quantiles) are texts in the table, as Spark's CAST renders them,
so that columns of all types fit into one; `Summary.column` gives them typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, overload

from metastore._texts import typed
from metastore.errors import ColumnNotFound

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd  # type: ignore[import-untyped] # optional, and so are its stubs
    import pyarrow as pa
    from rich.console import RenderableType

VERSION_OF_DOCUMENT = 1
TYPED = ("min", "max", "q25", "q50", "q75", "top_value")


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Sequence[dict[str, Any]]):
    """Rows that answer one question about one table, a query or the settings.

    Attributes:
        kind: The verb that was asked: `summary`, `files`, `columns`, ...
        subject: The table, location or query that it is about.
        snapshot: The snapshot that the numbers belong to, where there is one.
        current: Whether the table still is at that snapshot; None where this cannot be known.
        analyzed_at: When the numbers were computed.
        zone: The time zone in which timestamps are written.
    """

    kind: str
    subject: str
    data: pa.Table = field(repr=False)
    snapshot: str | None = None
    current: bool | None = None
    analyzed_at: datetime | None = None
    zone: str = "UTC"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the answer's columns."""
        return tuple(self.data.column_names)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.data

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame; needs pandas."""
        return self.data.to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """The answer as one document of plain Python values, the same that `--json` prints.

        Its `version` grows when fields change their meaning, not when fields are added.
        """
        head = {"version": VERSION_OF_DOCUMENT, "kind": self.kind, "subject": self.subject}
        if self.snapshot is not None:
            head |= {"snapshot": self.snapshot, "current": self.current, "analyzed_at": self.analyzed_at}
        return {**head, "rows": list(self)}

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        return {name: _plain(self.data.column(name)[at].as_py()) for name in self.columns}

    def __repr__(self) -> str:
        from metastore.display.text import render  # noqa: PLC0415 - only what is shown needs it

        return render(self)

    def __rich__(self) -> RenderableType:
        from metastore.display.terminal import render  # noqa: PLC0415 - as above

        return render(self)

    def _repr_html_(self) -> str:
        from metastore.display.html import render  # noqa: PLC0415 - as above

        return render(self)


class Summary(Answer):
    """One row per column of a table."""

    def column(self, name: str) -> dict[str, Any]:
        """The row of one column, its values typed.

        Integers come as `int`, decimals as `Decimal`, dates as `date`, timestamps as `datetime`; text stays text, and
        a value that Python's type cannot hold (a date after the year 9999) stays text as well.

        Raises:
            ColumnNotFound: The table has no such column, or the summary does not hold it.
        """
        names = self.data.column("column_name").to_pylist()
        if name not in names:
            raise ColumnNotFound(name, self.subject, near=get_close_matches(name, names, n=2))
        row = self[names.index(name)]
        values = {key: typed(row[key], row["column_type"], self.zone) for key in TYPED if key in row}
        return {**row, **values}


def _plain(value: Any) -> Any:
    """Maps come from Arrow as lists of pairs."""
    if isinstance(value, list) and value and all(isinstance(pair, tuple) for pair in value):
        return dict(value)
    return value
