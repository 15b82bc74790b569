package org.metastore.spark.adapter

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogStatistics, CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

import org.metastore.spark.cardinality.CatalogNumbers
import org.metastore.spark.explain.{Reason, ReasonCode}
import org.metastore.spark.store.TableStatistics

/**
 * Delta tables. The decision whether files may be dropped travels with the relation; they are dropped from the physical scan
 * (PhysicalScanRule), for Delta must find its own index in the relation until it has put its filter of deleted rows in place.
 */
private[adapter] final class DeltaAdapter extends RelationAdapter {

  override def prepare(
      relation: LogicalPlan, conjuncts: Seq[Expression], planner: ScanPlanner): Option[LogicalPlan] = relation match {
    case logical: LogicalRelation if !logical.isStreaming => logical.relation match {
      case files: HadoopFsRelation if ScanMark.of(files).isEmpty =>
        val label = logical.catalogTable.map(_.identifier.unquotedString)
        DeltaScan.of(files, label).map(prepared(logical, files, _, conjuncts, planner))
      case _ => None
    }
    case _ => None
  }

  private def prepared(
      logical: LogicalRelation, files: HadoopFsRelation, table: DeltaScan, conjuncts: Seq[Expression],
      planner: ScanPlanner): LogicalPlan = {
    val known = planner.statistics(table.id)
    val insideWrite = !planner.settings.pruneInsideWrites && DeltaScan.isInsideWrite(files)
    val restriction = planner.restriction.orElse(if (insideWrite) Some(Reason(ReasonCode.InsideWrite)) else None)
    val mark = restriction.orElse(ParquetAdapter.converted(files)) match {
      case Some(why) => ScanMark.refused(why)
      case None => known.fold(ScanMark.refused, s => ScanMark.Allowed(s.fingerprint, table.root.toString))
    }
    val marked = files.copy(options = files.options + mark.asOption)(files.sparkSession)
    val copy = logical.copy(
      relation = marked,
      catalogTable = if (planner.estimates) described(logical, files, table, numbers(files, table, conjuncts, planner, known)) else logical.catalogTable)
    copy.copyTagsFrom(logical)
    copy
  }

  private def numbers(
      files: HadoopFsRelation, table: DeltaScan, conjuncts: Seq[Expression], planner: ScanPlanner,
      known: Either[Reason, TableStatistics]): Option[CatalogStatistics] = known.toOption.flatMap { statistics =>
    val resolver = table.resolver(statistics.manifest)
    val planned = planner.plan(table.id, table.chosen, conjuncts, resolver)
    val attributes = files.schema.map(f => f.name -> AttributeReference(f.name, f.dataType, f.nullable)()).toMap
    planned.numbers.flatMap(CatalogNumbers.of(files.schema, _, name => resolver.key(attributes(name), Nil)))
  }

  /** Numbers that ANALYZE TABLES of Spark once left in the catalog are of an unknown version: ours, or none. */
  private def described(
      logical: LogicalRelation, files: HadoopFsRelation, table: DeltaScan,
      numbers: Option[CatalogStatistics]): Option[CatalogTable] =
    if (numbers.isEmpty) logical.catalogTable.map(_.copy(stats = None))
    else Some(logical.catalogTable.getOrElse(pathTable(table, files)).copy(stats = numbers))

  private def pathTable(table: DeltaScan, files: HadoopFsRelation): CatalogTable =
    CatalogTable(
      identifier = TableIdentifier(table.root.toString, Some("delta")),
      tableType = CatalogTableType.EXTERNAL,
      storage = CatalogStorageFormat.empty.copy(locationUri = Some(table.root.toUri)),
      schema = files.schema,
      provider = Some("delta"))
}
