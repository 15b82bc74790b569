package org.metastore.spark.adapter

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogStatistics, CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, InMemoryFileIndex, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.cardinality.CatalogNumbers
import org.metastore.spark.explain.{Reason, ReasonCode}
import org.metastore.spark.store.TableStatistics

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
    val mark = planner.restriction.orElse(ParquetAdapter.converted(files)) match {
      case Some(why) => ScanMark.refused(why)
      case None => known.fold(ScanMark.refused, s => ScanMark.Allowed(s.fingerprint, table.root.toString))
    }
    val marked = files.copy(options = files.options + mark.asOption)(files.sparkSession)
    val numbers = known.toOption.filter(_ => planner.estimates).flatMap(estimate(files, table, conjuncts, planner, _))
    val described = numbers.fold(logical.catalogTable) { stats =>
      Some(logical.catalogTable.getOrElse(pathTable(table, files.schema)).copy(stats = Some(stats)))
    }
    val copy = logical.copy(relation = marked, catalogTable = described)
    copy.copyTagsFrom(logical)
    copy
  }

  // Partitions in a catalog are listed by Spark later, for the filters that it pushes: not twice for an estimate.
  private def estimate(
      files: HadoopFsRelation, table: ParquetTable, conjuncts: Seq[Expression], planner: ScanPlanner,
      known: TableStatistics): Option[CatalogStatistics] = files.location match {
    case index: InMemoryFileIndex =>
      val listed = table.files(index.listFiles(table.partitionFilters(conjuncts), Nil))
      val resolver = table.resolver(known.manifest)
      val planned = planner.plan(table.id, listed, conjuncts, resolver)
      val attributes = files.schema.map(f => f.name -> AttributeReference(f.name, f.dataType, f.nullable)()).toMap
      planned.numbers.flatMap(CatalogNumbers.of(files.schema, _, name => resolver.key(attributes(name), Nil)))
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
  private val rebaseModes = Seq(
    "datetimeRebaseMode" -> SQLConf.PARQUET_REBASE_MODE_IN_READ, "int96RebaseMode" -> SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)

  /** Why the scan's dates or timestamps are other values than those that were analyzed. */
  def converted(files: HadoopFsRelation): Option[Reason] = {
    val conf = SQLConf.get
    def legacy = rebaseModes.exists { case (option, setting) =>
      // The setting itself knows its older names.
      val mode = files.options.find(_._1.equalsIgnoreCase(option)).fold(conf.getConf(setting).toString)(_._2)
      mode.equalsIgnoreCase("LEGACY")
    }
    if (legacy) Some(refused("it reads by the legacy calendar"))
    else if (conf.getConf(SQLConf.PARQUET_INT96_TIMESTAMP_CONVERSION) && holdsTimestamps(files.dataSchema))
      Some(refused("it moves timestamps of other writers to another time zone"))
    else None
  }

  private def holdsTimestamps(dataType: DataType): Boolean = dataType match {
    case struct: StructType => struct.fields.exists(field => holdsTimestamps(field.dataType))
    case other => other == TimestampType // what stands in lists and maps has no statistics
  }

  private def refused(detail: String): Reason =
    Reason(ReasonCode.UnsupportedTable, "relation" -> "this scan", "detail" -> detail)
}
