"""A table without Spark, its statistics, and what an ANALYZE of it begins with."""

from __future__ import annotations

from metastore.adapters.table_facts import TableFacts
from metastore.pipeline.commit import commit_plan
from metastore.pipeline.plan import RoundState, make_plan
from metastore.pipeline.plan_inputs import PlanInputs
from metastore.pipeline.request import AnalyzeRequest
from metastore.spark_jobs.progress import NoProgress
from metastore.spark_jobs.task_store import TaskStore
from metastore.store.block_files import BlockFilesCache
from metastore.table_level.table_details import TableLevelOptions
from table_level.analyzed_tables import IDENTITY
from table_level.changing import Table


class Lake(Table):
    """A table, its statistics, and what an ANALYZE of it would begin with."""

    snapshot = "1"

    def __init__(self, folder):
        super().__init__(folder, 1)
        self.folder = folder

    def inputs(self, depth="full", columns=None, **more):
        facts = TableFacts(
            format="iceberg",
            uuid=IDENTITY.uuid,
            location=IDENTITY.location,
            root=IDENTITY.location,
            name="db.t",
            identifier="db.t",
            snapshot=self.snapshot,
            columns=self.columns,
            files=tuple(self.files),
            defaults={},
            absent_is_null=True,
            local=True,
            snapshot_sql="db.t",
        )
        request = AnalyzeRequest(depth=depth, columns=columns or self.columns, files=facts.files)
        store = self.store
        options = TableLevelOptions()
        return PlanInputs(
            facts=facts,
            request=request,
            store=store,
            task_store=TaskStore(store.uri),
            block_files=BlockFilesCache(store),
            options=options,
            snapshots_to_keep=10,
            **more,
        )

    def plan(self, state=None, **how):
        inputs = self.inputs(**how)
        return make_plan(inputs, state or RoundState.of(inputs), self.store.read())

    def analyzed(self, count=3):
        """Commit the statistics of so many new data files; gives the block."""
        inputs = self.inputs()
        plan = make_plan(inputs, RoundState.of(inputs), self.store.read())
        (block,) = self.append(count)
        commit_plan(self.inputs(), plan, plan.state, [block], NoProgress())
        return block

    def objects(self):
        return sorted((self.folder / "objects").iterdir())
