package org.metastore.spark.adapter

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogStatistics, CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, InMemoryFileIndex, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import org.metastore.spark.cardinality.CatalogNumbers
import org.metastore.spark.explain.{Reason, ReasonCode}

/**
 * Plain Parquet tables. Here only the decision whether files may be dropped is made, and travels with the relation; the
 * physical scan's own filters say which (PhysicalScanRule): what a plan is for can be told only here.
 */
private[adapter] final class ParquetAdapter(session: SparkSession) extends RelationAdapter {

  override def prepare(
      relation: LogicalPlan, conjuncts: Seq[Expression], planner: ScanPlanner): Option[LogicalPlan] = relation match {
    case logical: LogicalRelation if !logical.isStreaming => logical.relation match {
      case files: HadoopFsRelation if ScanMark.of(files).isEmpty =>
        val label = logical.catalogTable.map(_.identifier.unquotedString)
        ParquetTable.of(files, label, session).map(prepared(logical, files, _, conjuncts, planner))
      case _ => None
    }
    case _ => None
  }

  private def prepared(
      logical: LogicalRelation, files: HadoopFsRelation, table: ParquetTable, conjuncts: Seq[Expression],
      planner: ScanPlanner): LogicalPlan = {
    val known = planner.statistics(table.id)
    val mark = planner.restriction.orElse(ParquetAdapter.rebased(files)) match {
      case Some(why) => ScanMark.refused(why)
      case None => known.fold(ScanMark.refused, s => ScanMark.Allowed(s.fingerprint, table.root.toString))
    }
    val marked = files.copy(options = files.options + mark.asOption)(files.sparkSession)
    val numbers = if (planner.estimates && known.isRight) estimate(files, table, conjuncts, planner) else None
    val described = numbers.fold(logical.catalogTable) { stats =>
      Some(logical.catalogTable.getOrElse(pathTable(table, files.schema)).copy(stats = Some(stats)))
    }
    val copy = logical.copy(relation = marked, catalogTable = described)
    copy.copyTagsFrom(logical)
    copy
  }

  // Partitions in a catalog are listed by Spark later, for the filters that it pushes: not twice for an estimate.
  private def estimate(
      files: HadoopFsRelation, table: ParquetTable, conjuncts: Seq[Expression],
      planner: ScanPlanner): Option[CatalogStatistics] = files.location match {
    case index: InMemoryFileIndex =>
      val listed = table.files(index.listFiles(table.partitionFilters(conjuncts), Nil))
      val planned = planner.plan(table.id, listed, conjuncts, table.resolver)
      planned.numbers.flatMap(CatalogNumbers.of(files.schema, _, name => table.keyOf(Seq(name))))
    case _ => None
  }

  private def pathTable(table: ParquetTable, schema: StructType): CatalogTable =
    CatalogTable(
      identifier = TableIdentifier(table.root.toString, Some("parquet")),
      tableType = CatalogTableType.EXTERNAL,
      storage = CatalogStorageFormat.empty.copy(locationUri = Some(table.root.toUri)),
      schema = schema,
      provider = Some("parquet"))
}

private[adapter] object ParquetAdapter {
  private val modes = Seq("datetimeRebaseMode", "int96RebaseMode")

  /** Dates and timestamps read by the old calendar are other values than those that were analyzed. */
  private def rebased(files: HadoopFsRelation): Option[Reason] = {
    val asked = modes.flatMap { mode =>
      files.options.find(_._1.equalsIgnoreCase(mode)).map(_._2)
        .orElse(Option(SQLConf.get.getConfString(s"spark.sql.parquet.${mode}InRead", null))) // scalastyle:ignore
    }
    if (!asked.exists(_.equalsIgnoreCase("LEGACY"))) None
    else Some(Reason(ReasonCode.UnsupportedTable, "relation" -> "this scan", "detail" -> "it reads by the legacy calendar"))
  }
}
