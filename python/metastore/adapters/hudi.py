"""The table format Hudi: data files are the base files of the file slices at one instant, with their log files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import TableFormat

if TYPE_CHECKING:
    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import TableFacts


def complete(answer: ShimAnswer) -> TableFacts:
    """Complete the facts of a Hudi table at the instant that its name stands for.

    A base file with a version (`modified`) has log files, and statistics describe the merged rows. Log files without a
    version count as deletes: then statistics describe the base file alone. A column that a base file lacks is null
    there, unless another column has its name in another case, or readers take it to be never null: these read
    undefined memory.
    """
    keys = {column.key for column in answer.facts.columns}
    files = [replace(file, has_log_files=file.modified is not None) for file in answer.facts.files]
    return replace(answer.facts, files=tuple(files), nameless_is_null=frozenset(keys - answer.required))


def pin_snapshot(facts: TableFacts, entry: CatalogEntry) -> TableFacts:
    """Pin reads of a Hudi table to its instant."""
    if entry.is_path:  # SQL does not read Hudi tables by path
        options = {"path": facts.location, "as.of.instant": str(facts.snapshot)}
        return replace(facts, snapshot_options=options)
    snapshot_sql = f"{facts.snapshot_sql} TIMESTAMP AS OF '{facts.snapshot}'"
    return replace(facts, snapshot_sql=snapshot_sql)


FORMAT = TableFormat(
    name="hudi",
    complete=complete,
    pin_snapshot=pin_snapshot,
    file_sql="input_file_name()",
    position_sql=None,
    has_sql_paths=False,
)
