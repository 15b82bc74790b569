package org.metastore.spark.tables

import scala.util.{Failure, Success, Try}

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{
  UnresolvedRelation, UnresolvedStar, UnresolvedTable, UnresolvedTableOrView
}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter, LeafNode, LogicalPlan, Project, SubqueryAlias, UnaryNode, View
}
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.reason.{MetastoreException, SqlName}

/** A table that this user may read in full, with its name in Spark's session catalog, if that names it. */
final case class TableHandle(
    table: LakeTable,
    name: Option[String],
    sessionTable: Option[TableIdentifier],
    relation: LogicalPlan)

/** Finds the table that a user names, through the session's catalogs and with the session's rights. */
object TableLookup {

  /**
   * Resolves `t`, `db.t`, `cat.db.t` or a path such as `` delta.`/path` ``.
   *
   * @throws MetastoreException if there is no such table, if its kind has no statistics, or if this user may
   *                            not read it in full
   */
  def resolve(session: SparkSession, name: String): LakeTable = find(session, name).table

  /**
   * Finds a table as `find` does, with the files that it has now.
   *
   * The session's cached listing is dropped, not refreshed: running queries list their files from it, and
   * would find none meanwhile. A catalog's cached table is refreshed, not dropped: a running command commits
   * to it, and later queries would read another table, from before the commit.
   *
   * @param refreshes whether to include commits of other writers that the session's catalog does not know yet
   */
  def findNewest(session: SparkSession, name: String, refreshes: Boolean): TableHandle = {
    val handle = find(session, name)
    handle.sessionTable match {
      case Some(listed) if handle.table.isKeptBySession =>
        session.sessionState.catalog.invalidateCachedTable(listed)
        find(session, name)
      case _ if refreshes && refresh(session, name, handle) => find(session, name)
      case _ => handle
    }
  }

  /** Refreshes the table that the session's catalog has cached; returns whether it was stale. */
  private def refresh(session: SparkSession, name: String, handle: TableHandle): Boolean = {
    val cached = handle.table
    loadUncached(handle) match {
      // The catalog caches no table.
      case Success(None) => cached.refresh()
      // Nobody committed to the table since.
      case Success(Some(newest)) if newest.metadataFile.exists(cached.metadataFile.contains) => false
      // Somebody committed to the table.
      case Success(Some(newest)) if newest.uuid == cached.uuid => cached.refresh()
      // The catalog fails.
      case Failure(e) if !isMissing(e) => throw e
      // The catalog has the table without the branch's name.
      case Failure(_) if isBranch(cached) => cached.refresh()
      // The table was dropped, or another one has its name: nobody commits to the cached one.
      case _ =>
        session.sql(s"REFRESH TABLE $name")
        true
    }
  }

  private def isMissing(e: Throwable): Boolean = TableFormats.all.exists(_.isMissing(e))

  // The name of a branch follows the name that the catalog has.
  private def isBranch(table: LakeTable): Boolean = table.refusal.exists(_.isSelected)

  /** Resolves a table as `resolve` does, but loads it anew, with the keys that the catalog hands out now. */
  def resolveUncached(session: SparkSession, name: String): LakeTable =
    loadUncached(find(session, name)).get.getOrElse {
      session.sql(s"REFRESH TABLE $name")
      resolve(session, name)
    }

  private def loadUncached(handle: TableHandle): Try[Option[LakeTable]] = handle.relation match {
    case v2: DataSourceV2Relation => Try(TableFormats.openUncached(v2))
    case _ => Success(None)
  }

  /** Resolves a table as `resolve` does, and finds its name in its catalog. */
  def find(session: SparkSession, name: String): TableHandle = {
    val query = ReadPermission.asPermissionError(name)(selectAll(session, name))
    relation(query) match {
      case r: DataSourceV2Relation if TableFormats.isMetadataTable(r.table) =>
        throw MetastoreException.unsupportedTable(name, "it is a metadata table")
      case view: View => throw viewRefused(name, view)
      case other if other.children.nonEmpty => throw MetastoreException.rowsHidden(name)
      case leaf =>
        def unsupported = MetastoreException.unsupportedTable(
          name,
          s"it is read as ${TableFormats.describe(leaf)}, not as ${TableFormats.kinds}")
        val table = TableFormats.open(leaf).getOrElse(throw unsupported)
        ReadPermission.require(session, name, query, leaf)
        TableHandle(table, catalogName(leaf), sessionTable(leaf), leaf)
    }
  }

  private def viewRefused(name: String, view: View): MetastoreException = {
    val leaves = view.collectWithSubqueries { case leaf: LeafNode => leaf }
    if (leaves.exists(TableFormats.open(_).isDefined)) {
      val advice =
        if (isFiltered(view))
          s" metastore.filtered_summary(${Literal(s"SELECT * FROM $name").sql}) summarizes its rows."
        else " Ask about the tables that it reads."
      MetastoreException.unsupportedTable(name, "it is a view", advice)
    } else {
      val read = leaves.map(TableFormats.describe).distinct.mkString(", ")
      MetastoreException.unsupportedTable(
        name,
        s"it is a view that reads no table with data files, only $read")
    }
  }

  /** Whether a view reads one table alone, with WHERE or without. */
  private def isFiltered(plan: LogicalPlan): Boolean = plan match {
    case _: SubqueryAlias | _: View | _: Filter | _: Project => isFiltered(plan.children.head)
    case leaf => leaf.children.isEmpty && TableFormats.open(leaf).isDefined
  }

  /** The name of a relation's table in its catalog; None where the table was named by its path. */
  private def catalogName(relation: LogicalPlan): Option[String] = relation match {
    case v2: DataSourceV2Relation =>
      val identifier = v2.identifier.fold(Seq.empty[String])(table => table.namespace.toSeq :+ table.name)
      val parts = v2.catalog.map(_.name).toSeq ++ identifier
      Some(if (v2.table.name == parts.mkString(".")) SqlName(parts) else v2.table.name)
    case v1: LogicalRelation => v1.catalogTable.map(table => SqlName(table.identifier.nameParts))
    case _ => None
  }

  private def sessionTable(relation: LogicalPlan): Option[TableIdentifier] = relation match {
    case v1: LogicalRelation => v1.catalogTable.map(_.identifier)
    case v2: DataSourceV2Relation if v2.catalog.exists(_.name == Catalogs.SessionCatalog) =>
      v2.identifier.map(table => TableIdentifier(table.name, table.namespace.headOption))
    case _ => None
  }

  /** The name by which SQL finds a relation's table again, if it has one. */
  private[spark] def sqlName(relation: LogicalPlan): Option[String] = relation match {
    case v2: DataSourceV2Relation => for {
        catalog <- v2.catalog
        identifier <- v2.identifier if !Catalogs.isPath(identifier)
      } yield SqlName(catalog.name +: identifier.namespace.toSeq :+ identifier.name)
    case v1: LogicalRelation => v1.catalogTable.map(table => SqlName(table.identifier.nameParts))
    case _ => None
  }

  /** The analyzed query of all columns of a named table or view. */
  private def selectAll(session: SparkSession, name: String): LogicalPlan = {
    val parts = parse(session, name)
    val analyzed =
      try session.sessionState.analyzer.execute(queryOfAll(session, parts))
      catch { case e: Exception => throw explain(session, name, parts, e) }
    if (analyzed.exists(_.isInstanceOf[UnresolvedRelation])) throw notFound(session, parts)
    analyzed
  }

  private def parse(session: SparkSession, name: String): Seq[String] =
    try session.sessionState.sqlParser.parseMultipartIdentifier(name)
    catch {
      case _: ParseException =>
        throw MetastoreException.invalidArgument(
          "table",
          s"'$name' is not the name of a table",
          pathHint(name))
    }

  private def queryOfAll(session: SparkSession, parts: Seq[String]): LogicalPlan =
    TableFormats.atPath(session, parts) match {
      case Some(relation) => Project(Seq(UnresolvedStar(None)), relation)
      // Parsers and analyzers of plug-ins may act on a name in a whole query alone.
      case None =>
        val name = SqlName.everyPart(fromInsideView(session, parts))
        session.sessionState.sqlParser.parsePlan(s"SELECT * FROM $name")
    }

  /**
   * The error about a table's name that cannot be resolved: what is wrong with the table, else the failure.
   */
  private def explain(
      session: SparkSession,
      name: String,
      parts: Seq[String],
      failure: Exception): Exception = failure match {
    case e if TableFormats.all.exists(_.isNotFound(e)) => notFound(session, parts)
    case e: AnalysisException if NotFound.exists(code => e.getMessage.startsWith(s"[$code]")) =>
      notFound(session, parts)
    case e if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
      MetastoreException.unsupportedTable(name, s"this Spark does not have the format ${parts.head}")
    case UnreadableFile(file, reason) =>
      MetastoreException.unsupportedTable(
        name,
        s"Spark cannot read the columns of $file: $reason",
        " Replace or remove that file. A table of the catalog whose columns are declared (CREATE TABLE) is analyzed without it.")
    case e: AnalysisException if e.getMessage.startsWith("[UNABLE_TO_INFER_SCHEMA]") =>
      MetastoreException.unsupportedTable(name, "no file of it says what its columns are")
    case e: UnsupportedOperationException =>
      requireReadable(session, parts)
      e
    case e => e
  }

  /**
   * Raises an error that names the columns because of which Spark cannot read a table of a catalog.
   *
   * @throws MetastoreException METASTORE_UNSUPPORTED_TABLE
   */
  private[spark] def requireReadable(session: SparkSession, parts: Seq[String]): Unit = {
    def unreadable = Namespaces.resolve(session, parts.init) match {
      case (catalog: TableCatalog, names) =>
        val table = catalog.loadTable(Identifier.of(names, parts.last))
        TableFormats.all.flatMap(_.unreadableColumns(table))
      case _ => Nil
    }
    // A failure here comes again where the table is resolved, and is explained there.
    val columns = Try(unreadable).getOrElse(Nil)
    if (columns.nonEmpty)
      throw MetastoreException.unsupportedTable(
        SqlName(parts),
        s"Spark cannot read its ${columns.mkString(", ")}")
  }

  /** Checks each table that a parsed statement names. */
  private[spark] def requireReadable(session: SparkSession, parsed: LogicalPlan): Unit = {
    val names = parsed.collectWithSubqueries {
      case relation: UnresolvedRelation => relation.multipartIdentifier
      case table: UnresolvedTable => table.multipartIdentifier
      case table: UnresolvedTableOrView => table.multipartIdentifier
    }
    names.foreach(requireReadable(session, _))
  }

  private def notFound(session: SparkSession, parts: Seq[String]): MetastoreException =
    if (parts.length <= 2 && TableFormats.isLocation(parts.last))
      MetastoreException.tableNotFound(parts, Nil, if (parts.length == 1) pathHint(parts.head) else "")
    else MetastoreException.tableNotFound(
      parts,
      beside(session, parts),
      missing = Namespaces.explainMissing(session, parts.init),
      elsewhere = Namespaces.nameElsewhere(session, parts))

  private def pathHint(name: String): String =
    if (!TableFormats.isLocation(name)) ""
    else s" A path is asked about as ${TableFormats.pathForms(name)};" +
      s" without Spark: metastore.open('$name') in Python, metastore summary $name in a shell."

  /** Spark's errors for a path without a table, and for a name that starts with an unknown catalog. */
  private val NotFound = Seq("PATH_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")

  /** Names of the tables in the namespace of a name that was not found. */
  private def beside(session: SparkSession, parts: Seq[String]): Seq[String] =
    Try(Namespaces.resolve(session, parts.init)) match {
      case Success((catalog: TableCatalog, names)) =>
        // The session's catalog lists temporary views with the tables of each database.
        def isListed(table: Identifier) = parts.length == 1 || table.namespace.length == names.length
        val tables = Try(catalog.listTables(names).toSeq).getOrElse(Nil)
        val listed = for (table <- tables if isListed(table)) yield table.name
        listed.sorted
      case _ => Nil
    }

  /** The relation of a query of all columns, below the projections and aliases that name or order them. */
  private[spark] def relation(plan: LogicalPlan): LogicalPlan = plan match {
    case alias: SubqueryAlias => relation(alias.child)
    // A format may reorder the columns of a partitioned table, and Spark pads CHAR columns.
    case Project(columns, child) if FullProjection.isFull(columns, child) => relation(child)
    case marker: UnaryNode if isMarker(marker) => relation(marker.child)
    case other => other
  }

  /** Whether a node only marks its child, as plug-ins do. What replaces the mark later is checked again. */
  private def isMarker(node: UnaryNode): Boolean =
    !node.getClass.getName.startsWith(
      "org.apache.spark.") && node.expressions.isEmpty && node.output == node.child.output

  /** Inside a persistent view, short names mean the catalog and namespace in which the view was made. */
  private def fromInsideView(session: SparkSession, parts: Seq[String]): Seq[String] = {
    val viewNamespace = ViewNamespace.current
    def startsWithCatalog = parts.length > 1 && Catalogs(session).isRegistered(parts.head)
    if (viewNamespace.isEmpty || startsWithCatalog) parts
    else if (parts.length == 1) viewNamespace ++ parts
    else viewNamespace.head +: parts
  }
}
