package org.metastore.spark.auto

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

import org.metastore.spark.reason.{Indexed, SqlName}
import org.metastore.spark.tables.{LakeTable, Reflection, TableFormat, TableFormats}

/**
 * A table whose data files a command writes.
 *
 * @param name       its name in SQL
 * @param format     as in `contract/formats.json`
 * @param properties its properties, as far as they are known
 */
private[auto] final case class WrittenTable(name: String, format: String, properties: Map[String, String])

private[auto] object WrittenTable {

  /** The table that the root of a physical plan writes; None if it writes none of ours. */
  def fromPlan(plan: SparkPlan): Option[WrittenTable] = plan match {
    case ExecutedCommandExec(command) => fromCommand(command)
    case DataWritingCommandExec(command, _) => fromCommand(command)
    case command: V2CommandExec => command.logicalLink.flatMap(fromCommand)
    case _ => None
  }

  private def fromCommand(command: LogicalPlan): Option[WrittenTable] = command match {
    case write: V2WriteCommand => fromTarget(write.table)
    case stream if stream.nodeName == "WriteToDataSourceV2" => // deprecated, but for streams
      val targets = for (Some(target: DataSourceV2Relation) <- stream.productIterator) yield target
      Indexed.first(targets).flatMap(fromTarget)
    case create: CreateTableAsSelect => fromCreated(create.name, create.tableSpec)
    case create: ReplaceTableAsSelect => fromCreated(create.name, create.tableSpec)
    case insert: InsertIntoHadoopFsRelationCommand => insert.catalogTable.flatMap(fromCatalog)
    case create: CreateDataSourceTableAsSelectCommand => fromCatalog(create.table)
    case save: SaveIntoDataSourceCommand => fromPath(save)
    case command if TableFormats.all.exists(_.isWrite(command)) => fromTarget(command)
    case other => fromCall(other)
  }

  /** The table that a stored procedure writes. */
  def fromCall(call: LogicalPlan): Option[WrittenTable] =
    Indexed.firstAnswer(TableFormats.all) { format =>
      for {
        (catalog, identifier) <- format.writtenBy(call)
        table <- fromTable(catalog.loadTable(identifier), catalog, identifier)
      } yield table
    }

  /** The table that a stream writes, by the description of its sink. */
  def fromSink(session: SparkSession, description: String): Option[WrittenTable] = {
    val (sink, path) = description.span(_ != '[')
    val format = if (path.isEmpty) None else TableFormats.all.find(_.sink.contains(sink))
    format.map(fromLocation(session, _, new Path(path.drop(1).stripSuffix("]")), Map.empty))
  }

  private def fromTarget(target: LogicalPlan): Option[WrittenTable] = target match {
    case relation: DataSourceV2Relation =>
      for {
        catalog <- relation.catalog
        identifier <- relation.identifier
        table <- fromTable(relation.table, catalog, identifier)
      } yield table
    case resolved: ResolvedTable => fromTable(resolved.table, resolved.catalog, resolved.identifier)
    case relation: LogicalRelation =>
      relation.catalogTable.flatMap(fromCatalog).orElse(TableFormats.open(relation).map(fromFiles))
    case _: SubqueryAlias | _: MergeIntoTable | _: UpdateTable | _: DeleteFromTable =>
      fromTarget(target.children.head)
    case command: Command => fromParts(command)
    case _ => None
  }

  // A format's own command has its target as a catalog table, as `target`, or as its first plan.
  private def fromParts(command: Command): Option[WrittenTable] = {
    val parts = command.productIterator.toSeq
    val tables = parts.collect {
      case table: CatalogTable => fromCatalog(table)
      case Some(table: CatalogTable) => fromCatalog(table)
      case table: Table => TableFormats.open(table).map(fromLake(table, _))
      case entry: AnyRef if entry.getClass.getSimpleName == "HoodieCatalogTable" =>
        fromCatalog(Reflection.call[CatalogTable](entry, "table"))
    }
    def target = Try(Reflection.value[LogicalPlan](command, "target")).toOption
    val plans = parts.iterator.collect { case plan: LogicalPlan => plan }
    Indexed.first(tables.take(1).iterator.flatten ++ (target.iterator ++ plans).flatMap(fromTarget(_)))
  }

  private def fromTable(
      table: Table,
      catalog: CatalogPlugin,
      identifier: Identifier): Option[WrittenTable] = {
    val target = RowLevelTarget.tableOf(table)
    if (TableFormats.all.exists(_.isTemporary(catalog))) None
    else TableFormats.format(target).map(WrittenTable(nameOf(catalog, identifier), _, propertiesOf(target)))
  }

  private def fromCreated(name: LogicalPlan, spec: TableSpecBase): Option[WrittenTable] = name match {
    case ResolvedIdentifier(catalog, identifier) =>
      // A catalog of one format takes the provider for the format of its data files.
      val catalogFormat = TableFormats.all.find(_.isCatalog(catalog))
      def providerFormat =
        TableFormats.all.find(format => spec.provider.exists(_.equalsIgnoreCase(format.name)))
      catalogFormat.orElse(providerFormat).map { format =>
        val properties = propertiesOf(catalog, identifier) ++ spec.properties
        WrittenTable(nameOf(catalog, identifier), format.name, properties)
      }
    case _ => None
  }

  // CREATE OR REPLACE does not drop the properties of the table that it replaces.
  private def propertiesOf(catalog: CatalogPlugin, identifier: Identifier): Map[String, String] =
    orEmpty(propertiesOf(catalog.asInstanceOf[TableCatalog].loadTable(identifier)))

  private def propertiesOf(table: Table): Map[String, String] = orEmpty(table.properties.asScala.toMap)

  private def orEmpty(properties: => Map[String, String]): Map[String, String] =
    Try(properties).getOrElse(Map.empty[String, String])

  private def nameOf(catalog: CatalogPlugin, identifier: Identifier): String =
    if (identifier.namespace.length == 1 && identifier.name.contains('/'))
      SqlName(Seq(identifier.namespace.head, identifier.name))
    else SqlName(catalog.name +: identifier.namespace.toSeq :+ identifier.name)

  private def fromCatalog(table: CatalogTable): Option[WrittenTable] =
    for {
      provider <- table.provider
      format <- TableFormats.formatOfProvider(provider)
    } yield fromEntry(table, format)

  // The table of a format's own command holds its entry of the catalog.
  private def fromLake(table: Table, lake: LakeTable): WrittenTable = {
    val entry = Try(Reflection.value[Option[CatalogTable]](table, "catalogTable")).toOption.flatten
    entry.fold(fromFiles(lake))(fromEntry(_, lake.format))
  }

  private def fromEntry(table: CatalogTable, format: String): WrittenTable =
    WrittenTable(SqlName(table.identifier.nameParts), format, table.properties)

  private def fromFiles(lake: LakeTable): WrittenTable =
    WrittenTable(SqlName(Seq(lake.format, lake.location)), lake.format, lake.properties)

  private def fromPath(save: SaveIntoDataSourceCommand): Option[WrittenTable] = for {
    path <- save.options.get("path").map(new Path(_))
    source = save.dataSource.getClass.getName
    format <- TableFormats.all.find(_.description.hasClass(source)) if format.hasPaths
  } yield fromLocation(SparkSession.active, format, path, save.options)

  private def fromLocation(
      session: SparkSession,
      format: TableFormat,
      path: Path,
      options: Map[String, String]): WrittenTable = {
    // Only writers may name a relative path.
    val location = if (path.isAbsolute) path else LakeTable.qualify(path, session)
    val properties = orEmpty(format.propertiesAt(session, location, options))
    WrittenTable(SqlName(Seq(format.name, location.toString)), format.name, properties)
  }
}
