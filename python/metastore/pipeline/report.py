"""What ANALYZE tells about its work."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from metastore.adapters.table_facts import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


_REFUSED = re.compile(r'(?:"((?:[^"]|"")*)"|(.*?)): (.*)', re.DOTALL)


@dataclass(frozen=True)
class AnalyzeReport:
    """The work of one ANALYZE.

    Attributes:
        table: Full name of the table.
        format: Its format.
        snapshot: The snapshot that was analyzed; "none" for a table that was never written, as in summary.
        files: Data files that statistics cover now.
        files_read: Data files that were read by this run: for their values, or to count the rows that equality deletes
            delete.
        files_total: Data files of the snapshot.
        rows: Live rows of the snapshot.
        columns: Leaves of the schema that have statistics in some file now.
        bytes_read: Size of the data files that were read.
        objects: Objects written to the store.
        committed: Whether a new manifest was written: False when everything was there.
        refused: What was left out, with the reason.
        seconds: How long it took.
    """

    table: str
    format: str
    snapshot: str
    files: int
    files_read: int
    files_total: int
    rows: int | None
    columns: int
    bytes_read: int
    objects: int
    committed: bool
    refused: tuple[Refusal, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, refusals as `[subject, reason]` pairs."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["refused"] = [[refusal.subject, refusal.reason] for refusal in self.refused]
        return values

    def _repr_html_(self) -> str:
        from metastore.answers import Answer  # noqa: PLC0415 - only what is shown needs it
        from metastore.display.cells import format_brief_cell  # noqa: PLC0415

        numbers = {name: value for name, value in self.to_dict().items() if name not in ("table", "refused")}
        shown = [(name, format_brief_cell(name, value)) for name, value in numbers.items()]
        shown += [("refused", f"{one.subject}: {one.reason}") for one in self.refused]
        rows = tuple({"measure": name.replace("_", " "), "value": value} for name, value in shown)
        return Answer("ANALYZE", self.table, ("measure", "value"), rows)._repr_html_()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AnalyzeReport:
        """Read the row that SQL shows, refusals as texts."""
        values = {field.name: row[field.name] for field in fields(cls)}
        values["refused"] = tuple(map(_refusal, values["refused"]))
        return cls(**values)


def _refusal(text: str) -> Refusal:
    """Split `subject: reason`; a subject that holds a colon itself comes in double quotes, doubled inside."""
    parts = _REFUSED.fullmatch(text)
    if parts is None:
        return Refusal("", text)
    quoted, plain, reason = parts.groups()
    return Refusal(plain if quoted is None else quoted.replace('""', '"'), reason)
