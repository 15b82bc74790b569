package org.metastore.spark.sql

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}

import org.metastore.spark.reason.{Indexed, MetastoreException, SqlName, VisibleText}
import org.metastore.spark.statistics.objects.SummaryRow
import org.metastore.spark.tables.{Namespaces, TableFormats}

/** `metastore.files(table [, at])`: one row a live data file, analyzed or not. */
object FilesFunction extends TableFunction("files") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.open(session, call.text("table"))
    val asked = analyzed.requestedSnapshot(call.value("at"))
    val live = asked.toSeq.flatMap(analyzed.table.dataFiles)
    val snapshot = analyzed.answeringSnapshot(asked, _ => true)
    val level = snapshot.map(new FileLevel(analyzed, _))
    val known = Indexed.by(level.toSeq.flatMap(_.files))(_.key)
    val keys = Indexed.set(analyzed.table.leaves(asked))(_.key)
    val rows = live.flatMap(file => known.get(file.key))
    val counts = level.fold(Map.empty[String, Int])(_.columnCounts(rows, keys))
    // Deletes belong to a snapshot: those of an ancestor say nothing about this one.
    val isRequested = snapshot.map(_.id) == asked
    live.map { file =>
      val row = known.get(file.key)
      val deleted = if (isRequested) row.flatMap(_.deletedRows) else None
      ResultRow.row(
        file.path,
        file.size,
        file.rows.orElse(row.flatMap(_.rows)),
        deleted.orElse(file.deletedRows),
        ResultRow.texts(file.partition.toSeq),
        row.exists(_.block.isDefined),
        counts.getOrElse(file.path, 0).toLong)
    }
  }
}

/** `metastore.columns(table [, column])`: one row a data file and column. */
object ColumnsFunction extends StatisticsFunction("columns") {

  /** The rows of all data files; a view may ask for those of one. */
  override def rowsWithStatistics(
      session: SparkSession,
      call: Arguments): Seq[(InternalRow, Option[SummaryRow])] = {
    val analyzed = TableContext.open(session, call.text("table"))
    val current = analyzed.table.current
    val snapshot = analyzed.snapshotWithColumns(current)
    val leaves = analyzed.table.leaves(current)
    val asked = call.optional("column") match {
      case None => leaves
      case Some(column) => IndexedSeq(analyzed.leaf(session, column, analyzed.described(current, snapshot)))
    }
    val wanted = asked.filter(leaf => call.keeps("column_name", leaf.name))
    val byKey = Indexed.by(wanted)(_.key)
    val level = new FileLevel(analyzed, snapshot)
    val named = call.optional("file").fold(level.files)(path => IndexedSeq(level.find(path)))
    val files = named.filter(file => call.keeps("path", file.path))
    for (FileColumnSummary(file, column, row) <- level.columns(files, wanted.map(_.key))) yield {
      val leaf = byKey(column.key)
      val text = ValueText.fromTypes(column.dataType, leaf.dataType)
      ResultRow.row(
        file.path,
        leaf.name,
        text.bound(row.lo, row.loExact),
        text.bound(row.hi, row.hiExact),
        row.rows,
        row.nulls,
        row.nans,
        row.distinct,
        row.frequencies) -> Some(row)
    }
  }
}

/** `metastore.snapshots(table)`: one row an analyzed snapshot, oldest first. */
object SnapshotsFunction extends TableFunction("snapshots") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.open(session, call.text("table"))
    analyzed.snapshots.map { snapshot =>
      ResultRow.row(
        snapshot.id,
        ValueText.timestamp(snapshot.analyzedAt),
        snapshot.files,
        snapshot.filesTotal,
        snapshot.rows,
        snapshot.columns.count(!_.isExpression).toLong,
        analyzed.isCurrent(snapshot),
        snapshot.sizeBytes,
        snapshot.liveSizeBytes)
    }
  }
}

/** `metastore.tables([database])`: one row a table that has statistics. */
object TablesFunction extends TableFunction("tables") with Logging {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val database = call.optional("database").toSeq.flatMap(parts(session, _))
    val (catalog, namespace) = Namespaces.resolve(session, database)
    catalog match {
      case tables: TableCatalog =>
        listed(tables, namespace).sortBy(_.name).flatMap(analyzed(session, tables, _))
      case other =>
        throw MetastoreException.invalidArgument("database", s"the catalog ${other.name} has no tables")
    }
  }

  private def parts(session: SparkSession, database: String): Seq[String] =
    try session.sessionState.sqlParser.parseMultipartIdentifier(database)
    catch {
      case _: ParseException =>
        throw MetastoreException.invalidArgument("database", s"'$database' is not the name of a database")
    }

  private def listed(catalog: TableCatalog, namespace: Array[String]): Seq[Identifier] =
    try catalog.listTables(namespace).toSeq
    catch {
      case NonFatal(e) if Namespaces.isMissing(catalog, namespace, e) =>
        throw MetastoreException.databaseNotFound(
          catalog.name +: namespace.toSeq,
          Namespaces.siblings(catalog, namespace))
      case NonFatal(e) => throw MetastoreException.invalidArgument(
          "database",
          s"the tables of ${SqlName(catalog.name +: namespace.toSeq)} cannot be listed: ${MetastoreException.firstLine(e)}")
    }

  /** A table that cannot be loaded, or that this user may not read, is not a reason to hide the others. */
  private def analyzed(
      session: SparkSession,
      catalog: TableCatalog,
      table: Identifier): Option[InternalRow] = {
    val name = SqlName(catalog.name +: table.namespace.toSeq :+ table.name)
    try {
      val identity = TableFormats.identity(session, catalog.loadTable(table))
      val hasStatistics = identity.exists(TableContext.store(session, _).manifest().isDefined)
      if (hasStatistics) row(TableContext.open(session, name)) else None
    } catch {
      // Plug-ins refuse with exceptions of their own.
      case NonFatal(e) =>
        logWarning(VisibleText(s"metastore.tables leaves out $name: ${MetastoreException.firstLine(e)}"))
        None
    }
  }

  private def row(analyzed: TableContext): Option[InternalRow] = analyzed.manifest.map { manifest =>
    val snapshot = analyzed.answeringSnapshot(analyzed.table.current, _ => true).orElse(manifest.latest)
    ResultRow.row(
      analyzed.name,
      analyzed.table.format,
      analyzed.table.location,
      snapshot.map(_.id),
      snapshot.exists(analyzed.isCurrent),
      snapshot.map(s => ValueText.timestamp(s.analyzedAt)))
  }
}
