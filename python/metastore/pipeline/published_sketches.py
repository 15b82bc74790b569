"""What ANALYZE tells other engines: sketches of the snapshot's columns, where the table's own metadata has a place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metastore.adapters.catalog import escape_literal
from metastore.adapters.descriptors import describe_format
from metastore.adapters.identifiers import quote_name, split_name
from metastore.adapters.spark_errors import find_cause
from metastore.adapters.table_facts import Refusal
from metastore.format.manifest import FULL
from metastore.kernel.theta_sketch import ThetaSketch
from metastore.table_level.snapshot_level import snapshot_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.table_column import Column
    from metastore.pipeline.plan_inputs import PlanInputs


SUBJECT = "distinct counts for other engines"
_DELETED = "rows of the snapshot are deleted, whose values its sketches count: there are none until files are rewritten"
_PARTIAL = "no column is analyzed in every data file: ANALYZE TABLE {} COMPUTE STATISTICS FOR ALL COLUMNS"
_NO_SKETCH = (
    "of {} data files that were analyzed without spark.metastore.iceberg.puffin keep no sketch: "
    "CALL {}.system.compute_table_stats(table => '{}', columns => array({})) reads them again"
)


@dataclass(frozen=True)
class WholeColumns:
    """What is known of the columns that are analyzed in every data file, by their keys.

    Attributes:
        sketches: Those with a sketch.
        others: Those that only something else than a sketch counts.
    """

    sketches: Mapping[str, ThetaSketch] = field(default_factory=dict)
    others: tuple[Column, ...] = ()


def publish_sketches(spark: SparkSession, inputs: PlanInputs) -> tuple[Refusal, ...]:
    """Publish the sketches of whole columns where that is asked for, and say what is left out."""
    facts = inputs.facts
    publish = describe_format(facts.format).publish_sketches
    if not inputs.is_publishing or publish is None or inputs.request.depth != FULL or not facts.files:
        return ()
    if not facts.is_physical:
        return (Refusal(SUBJECT, _DELETED),)
    try:
        known = _read_columns(inputs)
        if not known.sketches and not known.others:
            return (Refusal(SUBJECT, _PARTIAL.format(facts.in_statements)),)
        told = publish(spark, facts, known.sketches)
    except Exception as failure:  # noqa: BLE001 - the statistics are committed: whatever others do with theirs
        return (Refusal(SUBJECT, f"they could not be published: {find_cause(failure)}"),)
    missing = [column.name for column in known.others if column.key not in told]
    return (Refusal(SUBJECT, _explain_missing(facts, missing)),) if missing else ()


def _explain_missing(facts: TableFacts, missing: list[str]) -> str:
    catalog, *names = split_name(facts.identifier)
    listed = ", ".join(f"'{escape_literal(name)}'" for name in missing)
    return _NO_SKETCH.format(", ".join(missing), quote_name([catalog]), escape_literal(quote_name(names)), listed)


def _read_columns(inputs: PlanInputs) -> WholeColumns:
    manifest = inputs.store.read()
    entries = manifest.snapshots if manifest else ()
    snapshot = next((one for one in entries if one.id == snapshot_id(inputs.facts)), None)
    if snapshot is None or snapshot.summary is None:
        return WholeColumns()
    rows = inputs.store.get(snapshot.summary, ["column", "files", "distinct"]).to_pylist()
    mapping = inputs.facts.name_mapping
    described = snapshot if mapping is None else mapping.resolve_snapshot(snapshot)
    columns = dict(enumerate(described.columns))  # expressions come behind them
    counted = {
        row["column"]
        for row in rows
        if row["files"] == snapshot.files_total and row["distinct"] is not None and row["column"] in columns
    }
    stored = inputs.store.get(snapshot.sketches).to_pylist() if snapshot.sketches else ()
    sketches = {row["column"]: ThetaSketch.from_bytes(row["theta"]) for row in stored if row["column"] in counted}
    return WholeColumns(
        {columns[place].key: sketch for place, sketch in sketches.items()},
        tuple(columns[place] for place in sorted(counted - sketches.keys())),
    )
