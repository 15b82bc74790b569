package org.metastore.spark.auto

import java.util.Locale

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, ResolvedTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.{
  CreateDataSourceTableAsSelectCommand, DataWritingCommandExec, ExecutedCommandExec
}
import org.apache.spark.sql.execution.datasources.{
  InsertIntoHadoopFsRelationCommand, LogicalRelation, SaveIntoDataSourceCommand
}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, V2CommandExec}
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.reason.SqlName
import org.metastore.spark.tables.{LakeTable, Reflection, TableFormat, TableFormats}

/**
 * A table of which a command writes data files.
 *
 * @param name       by which SQL finds it
 * @param format     as in `contract/formats.json`
 * @param properties what its catalog tells of it, where that is known
 */
private[auto] final case class WrittenTable(name: String, format: String, properties: Map[String, String])

private[auto] object WrittenTable {

  /** The table that the root of a physical plan writes; None for all that writes none of ours. */
  def of(plan: SparkPlan): Option[WrittenTable] = plan match {
    case ExecutedCommandExec(command) => ofCommand(command)
    case DataWritingCommandExec(command, _) => ofCommand(command)
    case command: V2CommandExec => command.logicalLink.flatMap(ofCommand)
    case _ => None
  }

  private def ofCommand(command: LogicalPlan): Option[WrittenTable] = command match {
    case write: V2WriteCommand => ofTarget(write.table)
    case stream if stream.nodeName == "WriteToDataSourceV2" => // deprecated, but for streams
      stream.productIterator.collectFirst { case Some(relation: DataSourceV2Relation) => relation }.flatMap(
        ofTarget)
    case create: CreateTableAsSelect => ofCreated(create.name, create.tableSpec)
    case create: ReplaceTableAsSelect => ofCreated(create.name, create.tableSpec)
    case insert: InsertIntoHadoopFsRelationCommand => insert.catalogTable.flatMap(ofCatalog)
    case create: CreateDataSourceTableAsSelectCommand => ofCatalog(create.table)
    case save: SaveIntoDataSourceCommand => ofPath(save)
    case own if TableFormats.all.exists(_.isWrite(own)) => ofTarget(own)
    case other => ofCall(other)
  }

  /** The table that a stored procedure writes. */
  def ofCall(call: LogicalPlan): Option[WrittenTable] =
    TableFormats.all.iterator.flatMap(_.writtenBy(call)).flatMap { case (catalog, identifier) =>
      ofTable(catalog.loadTable(identifier), catalog, identifier)
    }.toSeq.headOption

  /** The table that a stream writes into a sink which describes itself so. */
  def ofSink(session: SparkSession, description: String): Option[WrittenTable] = {
    val format = TableFormats.all.find(_.sink.exists(sink => description.startsWith(s"$sink[")))
    format.map(at(session, _, new Path(description.dropWhile(_ != '[').drop(1).stripSuffix("]")), Map.empty))
  }

  private def ofTarget(target: LogicalPlan): Option[WrittenTable] = target match {
    case relation: DataSourceV2Relation =>
      relation.catalog.zip(relation.identifier).headOption.flatMap { case (catalog, identifier) =>
        ofTable(relation.table, catalog, identifier)
      }
    case resolved: ResolvedTable => ofTable(resolved.table, resolved.catalog, resolved.identifier)
    case relation: LogicalRelation =>
      relation.catalogTable.flatMap(ofCatalog).orElse(TableFormats.open(relation).map(ofFiles))
    case SubqueryAlias(_, child) => ofTarget(child)
    case merge: MergeIntoTable => ofTarget(merge.targetTable)
    case update: UpdateTable => ofTarget(update.table)
    case delete: DeleteFromTable => ofTarget(delete.table)
    case command: Command => ofParts(command)
    case _ => None
  }

  // A format's own commands call their target so, or have it in their catalog's words; what they read has another place.
  private def ofParts(command: Command): Option[WrittenTable] = {
    val parts = command.productIterator.toSeq
    val told = parts.collect {
      case table: CatalogTable => ofCatalog(table)
      case Some(table: CatalogTable) => ofCatalog(table)
      case table: Table => TableFormats.open(table).map(ofLake(table, _))
      case own: AnyRef if own.getClass.getSimpleName == "HoodieCatalogTable" =>
        ofCatalog(Reflection.call[CatalogTable](own, "table"))
    }
    told.headOption.flatten
      .orElse(Try(Reflection.value[LogicalPlan](command, "target")).toOption.flatMap(ofTarget))
      .orElse(parts.iterator.collect { case plan: LogicalPlan => plan }.flatMap(ofTarget(_)).toSeq.headOption)
  }

  private def ofTable(table: Table, catalog: CatalogPlugin, identifier: Identifier): Option[WrittenTable] = {
    val own = RowLevelTarget.tableOf(table)
    TableFormats.format(own).filterNot(_ => TableFormats.all.exists(_.isTemporary(catalog))).map { format =>
      val properties = Try(own.properties.asScala.toMap).getOrElse(Map.empty[String, String])
      WrittenTable(nameOf(catalog, identifier), format, properties)
    }
  }

  private def ofCreated(name: LogicalPlan, spec: TableSpecBase): Option[WrittenTable] = name match {
    case ResolvedIdentifier(catalog, identifier) =>
      val named = spec.provider.map(_.toLowerCase(Locale.ROOT))
      // A catalog of one format takes the provider for the format of its data files.
      val format = TableFormats.all.find(_.isCatalog(catalog)).orElse(TableFormats.all.find(one =>
        named.contains(one.name)))
      format.map(one =>
        WrittenTable(
          nameOf(catalog, identifier),
          one.name,
          propertiesOf(catalog, identifier) ++ spec.properties))
    case _ => None
  }

  // A table that takes the place of another keeps what that was told.
  private def propertiesOf(catalog: CatalogPlugin, identifier: Identifier): Map[String, String] =
    catalog match {
      case tables: TableCatalog =>
        Try(tables.loadTable(identifier).properties.asScala.toMap).getOrElse(Map.empty)
      case _ => Map.empty
    }

  private def nameOf(catalog: CatalogPlugin, identifier: Identifier): String =
    if (identifier.namespace.length == 1 && identifier.name.contains('/'))
      SqlName(Seq(identifier.namespace.head, identifier.name))
    else SqlName(catalog.name +: identifier.namespace.toSeq :+ identifier.name)

  private def ofCatalog(table: CatalogTable): Option[WrittenTable] =
    table.provider.flatMap(TableFormats.ofProvider).map(named(table, _))

  // A format's own commands keep the catalog's words in the format's table.
  private def ofLake(table: Table, lake: LakeTable): WrittenTable = {
    val told = Try(Reflection.value[Option[CatalogTable]](table, "catalogTable")).toOption.flatten
    told.fold(ofFiles(lake))(named(_, lake.format))
  }

  private def named(table: CatalogTable, format: String): WrittenTable =
    WrittenTable(SqlName(table.identifier.nameParts), format, table.properties)

  private def ofFiles(lake: LakeTable): WrittenTable =
    WrittenTable(SqlName(Seq(lake.format, lake.location)), lake.format, lake.properties)

  private def ofPath(save: SaveIntoDataSourceCommand): Option[WrittenTable] = for {
    path <- save.options.get("path").map(new Path(_))
    source <- Some(save.dataSource.getClass.getName)
    format <- TableFormats.all.find(_.description.packages.exists(source.startsWith)) if format.hasPaths
  } yield at(SparkSession.active, format, path, save.options)

  private def at(
      session: SparkSession,
      format: TableFormat,
      path: Path,
      options: Map[String, String]): WrittenTable = {
    val whole = if (path.isAbsolute) path else LakeTable.qualify(path, session) // as only writers may name it
    val properties = Try(format.propertiesAt(session, whole, options)).getOrElse(Map.empty[String, String])
    WrittenTable(SqlName(Seq(format.name, whole.toString)), format.name, properties)
  }
}
