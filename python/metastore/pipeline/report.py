"""The report of an ANALYZE."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from metastore.adapters.table_facts import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


_REFUSED = re.compile(r'(?:"((?:[^"]|"")*)"|(.*?)): (.*)', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class AnalyzeReport:
    """The work of one ANALYZE.

    Attributes:
        table: Full name of the table.
        format: Its format.
        snapshot: The snapshot that was analyzed; "none" for a table that was never written, as in summary.
        files: Number of data files that statistics cover now.
        files_read: Data files that were read by this run: for their values, or to count the rows that equality deletes
            delete.
        files_total: Data files of the snapshot.
        rows: Live rows of the snapshot.
        columns: Leaves of the schema that have statistics in some file now.
        bytes_read: Size of the data files that were read.
        objects: Objects written to the store.
        committed: Whether a new manifest was written: False when everything was there.
        refused: Columns, data files and other subjects that were left out, with the reason.
        seconds: Duration.
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
        from metastore.answers import Answer  # noqa: PLC0415 - only notebooks need it
        from metastore.display.cells import format_brief_cell  # noqa: PLC0415

        measures = self.to_dict()
        del measures["table"]
        del measures["refused"]
        rows = []
        for name, value in measures.items():
            measure = name.replace("_", " ")
            rows.append({"measure": measure, "value": format_brief_cell(name, value)})
        for refusal in self.refused:
            reason = f"{refusal.subject}: {refusal.reason}"
            rows.append({"measure": "refused", "value": reason})
        answer = Answer(kind="ANALYZE", subject=self.table, columns=("measure", "value"), rows=tuple(rows))
        return answer._repr_html_()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AnalyzeReport:
        """Read a row of SQL's answer, whose refusals are texts."""
        values = {field.name: row[field.name] for field in fields(cls)}
        values["refused"] = tuple(map(_parse_refusal, values["refused"]))
        return cls(**values)


def _parse_refusal(text: str) -> Refusal:
    """Split `subject: reason`; a subject with a colon in it stands in double quotes, and quotes in it are doubled."""
    match = _REFUSED.fullmatch(text)
    if match is None:
        return Refusal("", text)
    quoted, plain, reason = match.groups()
    if quoted is None:
        return Refusal(plain, reason)
    return Refusal(quoted.replace('""', '"'), reason)
