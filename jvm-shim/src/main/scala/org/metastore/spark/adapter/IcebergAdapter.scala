package org.metastore.spark.adapter

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.{Scan, Statistics}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType

import org.metastore.spark.cardinality.IcebergNumbers
import org.metastore.spark.explain.{Reason, ReasonCode, ScanDecision}
import org.metastore.spark.pruning.ColumnResolver

/** Iceberg tables: stand-ins before table, scan builder and scan, put in place before Iceberg's own push-down. */
private[adapter] final class IcebergAdapter extends RelationAdapter {

  override def prepare(
      relation: LogicalPlan, conjuncts: Seq[Expression], planner: ScanPlanner): Option[LogicalPlan] = relation match {
    case iceberg: DataSourceV2Relation if !IcebergAdapter.isIncremental(iceberg) =>
      IcebergTable.of(iceberg.table).map { table =>
        val request = new IcebergRequest(table, iceberg.output, conjuncts, planner)
        val standIn = Forwarding.standIn(new IcebergTableProxy(iceberg.table, request), classOf[Table])
        val prepared = iceberg.copy(table = standIn)
        prepared.copyTagsFrom(iceberg)
        prepared
      }
    case _ => None
  }
}

private[adapter] object IcebergAdapter {
  private val incremental = Seq(
    "start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp", "scan-task-set-id", "file-scan-task-set-id")

  private def isIncremental(relation: DataSourceV2Relation): Boolean = incremental.exists(relation.options.containsKey(_))
}

/** What the planner wants of one Iceberg relation, fulfilled when Iceberg builds the scan. */
private[adapter] final class IcebergRequest(
    table: IcebergTable, output: Seq[AttributeReference], conjuncts: Seq[Expression], planner: ScanPlanner) {

  /** Relations that are treated alike are equal: Spark recognises equal parts of a plan by it. */
  val fingerprint: AnyRef =
    (conjuncts.map(QueryPlan.normalizeExpressions(_, output).canonicalized), planner.restriction, planner.estimates)

  /** Prunes a scan that Iceberg has just built, and stands before it. */
  def prepare(scan: AnyRef): AnyRef = scan.getClass.getName match {
    case "org.apache.iceberg.spark.source.SparkBatchQueryScan" => pruned(scan)
    case name if Reflection.extendsClass(scan.getClass, "org.apache.iceberg.spark.source.SparkScan") =>
      val why = Reason(ReasonCode.UnsupportedTable, "relation" -> table.name, "detail" -> name.split('.').last)
      IcebergScanProxy.before(scan, ScanDecision.leftAlone(table.name, why), shielded(scan))
    case _ => scan // answered from metadata: there is nothing to read
  }

  private def pruned(scan: AnyRef): Scan =
    try {
      val tasks = new IcebergTasks(scan)
      val schema = table.schemaOf(scan)
      val id = TableId("iceberg", table.uuid, table.location, table.name)
      val planned = planner.plan(id, tasks.files, conjuncts, resolver(schema))
      val decision = planned.decision
      if (decision.after < decision.before) tasks.keep(tasks.tasks.indices.filter(decision.kept.get).map(tasks.tasks))
      val rows = Some(tasks.files.indices.filter(decision.kept.get).map(tasks.files(_).rows.getOrElse(0L).toDouble).sum)
      IcebergScanProxy.before(scan, decision, own =>
        if (!planner.estimates) own()
        else IcebergNumbers.answer(own, readSchema(scan), rows, planned.numbers, name => keyOf(schema, Seq(name))))
    } catch {
      case NonFatal(e) =>
        val why = Reason.failure(e)
        ScanPlanner.warn(table.name, why, e)
        IcebergScanProxy.before(scan, ScanDecision.leftAlone(table.name, why), shielded(scan))
    }

  private def shielded(scan: AnyRef): (() => Statistics) => Statistics = own =>
    if (planner.estimates) IcebergNumbers.withoutColumns(own, readSchema(scan), None) else own()

  private def readSchema(scan: AnyRef): StructType = scan.asInstanceOf[Scan].readSchema

  private def resolver(schema: Option[IcebergSchema]): ColumnResolver = new ColumnResolver {
    override def key(root: Attribute, path: Seq[String]): Option[String] =
      // By the relation's own name: in a query it stands as the user wrote it, in any case.
      output.find(_.exprId == root.exprId).flatMap(column => keyOf(schema, column.name +: path))
  }

  private def keyOf(schema: Option[IcebergSchema], path: Seq[String]): Option[String] =
    schema.flatMap(_.fieldId(path)).map(_.toString)
}
