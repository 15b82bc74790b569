package org.metastore.spark.sql

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}

import org.metastore.spark.reason.{Indexed, MetastoreException, SqlName, VisibleText}
import org.metastore.spark.statistics.objects.{Snapshot, SummaryRow, TableFileRow}
import org.metastore.spark.tables.{DataFile, Namespaces, TableFormats}

/** `metastore.files(table [, at])`: one row for each live data file, analyzed or not. */
object FilesFunction extends TableFunction("files") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val context = TableContext.open(session, call.text("table"))
    val requested = context.requestedSnapshot(call.value("at"))
    val live = requested.toSeq.flatMap(context.table.dataFiles)
    context.answeringSnapshot(requested, _ => true) match {
      case Some(snapshot) => describe(live, context, snapshot, requested)
      case None => live.map(row(_, None, None, 0))
    }
  }

  private def describe(
      live: Seq[DataFile],
      context: TableContext,
      snapshot: Snapshot,
      requested: Option[String]): Seq[InternalRow] = {
    val level = new FileLevel(context, snapshot)
    val analyzed = Indexed.by(level.files)(_.key)
    val keys = Indexed.set(context.table.leaves(requested))(_.key)
    val counts = level.columnCounts(live.flatMap(file => analyzed.get(file.key)), keys)
    // Deletes belong to a snapshot: those of an ancestor say nothing about this one.
    val isRequested = requested.contains(snapshot.id)
    for (file <- live) yield {
      val stored = analyzed.get(file.key)
      val deleted = if (isRequested) stored.flatMap(_.deletedRows) else None
      row(file, stored, deleted, counts.getOrElse(file.path, 0))
    }
  }

  private def row(
      file: DataFile,
      stored: Option[TableFileRow],
      deleted: Option[Long],
      columns: Int): InternalRow =
    ResultRow.row(
      file.path,
      file.size,
      file.rows.orElse(stored.flatMap(_.rows)),
      deleted.orElse(file.deletedRows),
      ResultRow.texts(file.partition.toSeq),
      stored.exists(_.block.isDefined),
      columns.toLong)
}

/** `metastore.columns(table [, column])`: one row for each data file and column. */
object ColumnsFunction extends StatisticsFunction("columns") {

  /** The rows of all data files; of one for a view that names it. */
  override def rowsWithStatistics(
      session: SparkSession,
      call: Arguments): Seq[(InternalRow, Option[SummaryRow])] = {
    val context = TableContext.open(session, call.text("table"))
    val current = context.table.current
    val snapshot = context.snapshotWithColumns(current)
    val leaves = call.optional("column") match {
      case None => context.table.leaves(current)
      case Some(column) => IndexedSeq(context.leaf(session, column, context.described(current, snapshot)))
    }
    val selected = leaves.filter(leaf => call.keeps("column_name", leaf.name))
    val byKey = Indexed.by(selected)(_.key)
    val level = new FileLevel(context, snapshot)
    val files = call.optional("file").fold(level.files)(path => IndexedSeq(level.find(path)))
    val selectedFiles = files.filter(file => call.keeps("path", file.path))
    for (FileColumnSummary(file, column, row) <- level.columns(selectedFiles, selected.map(_.key))) yield {
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

/** `metastore.snapshots(table)`: one row for each analyzed snapshot, oldest first. */
object SnapshotsFunction extends TableFunction("snapshots") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val context = TableContext.open(session, call.text("table"))
    context.snapshots.map { snapshot =>
      ResultRow.row(
        snapshot.id,
        ValueText.timestamp(snapshot.analyzedAt),
        snapshot.files,
        snapshot.filesTotal,
        snapshot.rows,
        snapshot.columns.count(!_.isExpression).toLong,
        context.isCurrent(snapshot),
        snapshot.sizeBytes,
        snapshot.liveSizeBytes)
    }
  }
}

/** `metastore.tables([database])`: one row for each table that has statistics. */
object TablesFunction extends TableFunction("tables") with Logging {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val database = call.optional("database").toSeq.flatMap(parts(session, _))
    val (catalog, namespace) = Namespaces.resolve(session, database)
    catalog match {
      case tables: TableCatalog =>
        list(tables, namespace).sortBy(_.name).flatMap(rowOrNone(session, tables, _))
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

  private def list(catalog: TableCatalog, namespace: Array[String]): Seq[Identifier] =
    try catalog.listTables(namespace).toSeq
    catch {
      case NonFatal(e) if Namespaces.isMissing(catalog, namespace, e) =>
        throw MetastoreException.databaseNotFound(
          catalog.name +: namespace.toSeq,
          Namespaces.siblings(catalog, namespace))
      case NonFatal(e) =>
        val name = SqlName(catalog.name +: namespace.toSeq)
        val reason = s"the tables of $name cannot be listed: ${MetastoreException.firstLine(e)}"
        throw MetastoreException.invalidArgument("database", reason)
    }

  /**
   * The row of a table; None if it cannot be loaded or this user may not read it, so that other tables are
   * shown.
   */
  private def rowOrNone(
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

  private def row(context: TableContext): Option[InternalRow] = context.manifest.map { manifest =>
    val snapshot = context.answeringSnapshot(context.table.current, _ => true).orElse(manifest.latest)
    ResultRow.row(
      context.name,
      context.table.format,
      context.table.location,
      snapshot.map(_.id),
      snapshot.exists(context.isCurrent),
      snapshot.map(s => ValueText.timestamp(s.analyzedAt)))
  }
}
