"""Publishes sketches of columns in the table's own metadata, for other engines to read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from metastore.adapters.catalog import escape_literal
from metastore.adapters.descriptors import EncodedSketch, describe_format
from metastore.adapters.identifiers import quote_name, split_name
from metastore.adapters.spark_errors import find_cause
from metastore.adapters.table_facts import Refusal
from metastore.format.manifest import FULL
from metastore.kernel.theta_sketch import ThetaSketch
from metastore.table_level.snapshot_level import snapshot_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import Snapshot
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.pipeline.plan_inputs import PlanInputs
    from metastore.store import Store


SUBJECT = "distinct counts for other engines"
_DELETED = "the snapshot has deleted rows, which sketches still count: rewrite its data files first"
_PARTIAL = "no column is analyzed in every data file: ANALYZE TABLE {} COMPUTE STATISTICS FOR ALL COLUMNS"
_NO_SKETCH = (
    "no sketches of {}: some data files were analyzed without spark.metastore.iceberg.puffin. "
    "CALL {}.system.compute_table_stats(table => '{}', columns => array({})) reads them again"
)


@dataclass(frozen=True)
class CompleteColumns:
    """The columns that are analyzed in every data file.

    Attributes:
        sketches: Sketches by the keys of their columns.
        without_sketch: Columns whose distinct values are counted without a sketch.
    """

    sketches: Mapping[str, EncodedSketch] = field(default_factory=dict)
    without_sketch: tuple[Column, ...] = ()


def publish_sketches(spark: SparkSession, inputs: PlanInputs) -> tuple[Refusal, ...]:
    """Publish the sketches of complete columns if the settings ask for it, and return why columns are left out."""
    is_full = inputs.request.depth == FULL
    if not (inputs.is_publishing and is_full and inputs.facts.files):
        return ()
    try:
        problem = _publish(spark, inputs)
    except Exception as failure:  # noqa: BLE001 - the statistics are committed: no error may hide that
        problem = f"they could not be published: {find_cause(failure)}"
    return () if problem is None else (Refusal(SUBJECT, problem),)


def _publish(spark: SparkSession, inputs: PlanInputs) -> str | None:
    """Publish the sketches; return why sketches of columns are left out, or None."""
    facts = inputs.facts
    if not facts.is_physical:
        return _DELETED
    publish = describe_format(facts.format).publish_sketches
    if publish is None:
        return None
    columns = _read_columns(inputs)
    if columns == CompleteColumns():
        return _PARTIAL.format(facts.in_statements)
    published = publish(spark, facts, columns.sketches)
    missing = [column.name for column in columns.without_sketch if column.key not in published]
    return _explain_missing(facts, missing) if missing else None


def _explain_missing(facts: TableFacts, missing: list[str]) -> str:
    catalog, *names = split_name(facts.identifier)
    listed = ", ".join(f"'{escape_literal(name)}'" for name in missing)
    return _NO_SKETCH.format(", ".join(missing), quote_name([catalog]), escape_literal(quote_name(names)), listed)


def _read_columns(inputs: PlanInputs) -> CompleteColumns:
    snapshot = _find_snapshot(inputs)
    if snapshot is None or snapshot.summary is None:
        return CompleteColumns()
    resolved = inputs.facts.resolve_snapshot(snapshot)
    columns = dict(enumerate(resolved.columns))  # ordinals of expressions follow those of columns
    counted = _list_counted_ordinals(inputs.store, snapshot.summary, snapshot.files_total) & columns.keys()
    sketches = {} if snapshot.sketches is None else _read_sketches(inputs.store, snapshot.sketches, counted)
    return CompleteColumns(
        sketches={columns[ordinal].key: sketch for ordinal, sketch in sketches.items()},
        without_sketch=tuple(columns[ordinal] for ordinal in sorted(counted - sketches.keys())),
    )


def _read_sketches(store: Store, ref: ObjectRef, ordinals: Collection[int]) -> dict[int, EncodedSketch]:
    sketches = {}
    for row in store.get(ref).to_pylist():
        if row["column"] in ordinals:
            sketch = ThetaSketch.from_bytes(row["theta"])
            sketches[row["column"]] = EncodedSketch(sketch.to_bytes(), int(sketch.estimate))
    return sketches


def _find_snapshot(inputs: PlanInputs) -> Snapshot | None:
    manifest = inputs.facts.own_manifest(inputs.store.read())
    snapshots = {snapshot.id: snapshot for snapshot in manifest.snapshots}
    return snapshots.get(snapshot_id(inputs.facts))


def _list_counted_ordinals(store: Store, summary: ObjectRef, files_total: int) -> set[int]:
    """List the ordinals of columns and expressions whose distinct values are counted in all data files."""
    rows = store.get(summary, ["column", "files", "distinct"])
    is_counted = pc.and_(pc.equal(rows["files"], files_total), pc.is_valid(rows["distinct"]))
    return set(rows["column"].filter(is_counted).to_pylist())
