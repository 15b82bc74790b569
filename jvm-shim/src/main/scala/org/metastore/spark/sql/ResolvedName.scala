package org.metastore.spark.sql

import scala.util.Try

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, UnresolvedRelation}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, SubqueryAlias, View}
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, TableCatalog}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.tables.{IcebergTable, LakeTable, LakeTables}

/** Finds the table that a user names, as the user: through the session's catalogs, with the session's rights. */
object ResolvedName {

  /**
   * Resolves `t`, `db.t`, `cat.db.t` or a path such as `` delta.`/path` ``.
   *
   * Spark's analyzer does it, with whatever other extensions add: where it makes more of the name than the table itself (a
   * view, a row filter, a column mask), nothing is told about the rows behind it, nor where a plug-in refuses to read it.
   *
   * @throws MetastoreException no such table, or not one that has statistics
   */
  def resolve(session: SparkSession, name: String): LakeTable = relation(session, name) match {
    case r: DataSourceV2Relation if IcebergTable.isMetadataTable(r.table) =>
      throw MetastoreException.unsupportedTable(name, "it is a metadata table")
    case _: View => throw MetastoreException.unsupportedTable(name, "it is a view", " Ask about the tables that it reads.")
    case other if other.children.nonEmpty => throw MetastoreException.hidden(name)
    case leaf => LakeTables.of(leaf) match {
      case Some(table) =>
        ReadPermission.require(session, name, leaf)
        table
      case None => throw MetastoreException.unsupportedTable(name, "it is no Iceberg, Delta or Hudi table with data, nor a directory of Parquet files")
    }
  }

  /** The plan of a table's name without aliases. */
  private def relation(session: SparkSession, name: String): LogicalPlan = {
    val state = session.sessionState
    val parts = try state.sqlParser.parseMultipartIdentifier(name) catch {
      case _: ParseException => throw MetastoreException.invalidArgument("table", s"'$name' is not the name of a table")
    }
    val analyzed = try LakeTables.atPath(session, parts).getOrElse(state.analyzer.execute(UnresolvedRelation(fromInsideView(session, parts)))) catch {
      case e: Exception if e.getClass.getName == "org.apache.hudi.exception.TableNotFoundException" =>
        throw MetastoreException.tableNotFound(name, parts, Nil)
      case e: AnalysisException if NotFound.exists(code => e.getMessage.startsWith(s"[$code]")) =>
        throw MetastoreException.tableNotFound(name, parts, Nil)
      case e: Exception if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
        throw MetastoreException.unsupportedTable(name, s"this Spark does not have the format ${parts.head}")
      // A branch that there is not, a metadata file that is gone.
      case e: Exception if e.getClass.getName.startsWith("org.apache.iceberg.exceptions.") =>
        throw MetastoreException.unsupportedTable(name, s"it cannot be loaded: ${MetastoreException.firstLine(e)}")
      case e: AnalysisException if e.getMessage.startsWith("[UNABLE_TO_INFER_SCHEMA]") =>
        throw MetastoreException.unsupportedTable(name, "no file of it says what its columns are")
    }
    withoutAlias(analyzed) match {
      case _: UnresolvedRelation => throw MetastoreException.tableNotFound(name, parts, beside(session, parts))
      case found => found
    }
  }

  /** What Spark and Delta call a path without a table, and a name that starts with an unknown catalog. */
  private val NotFound =
    Seq("PATH_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")

  /** The catalog and namespace that the parts of a name stand for; without parts, the current ones. */
  private[sql] def namespace(session: SparkSession, parts: Seq[String]): (CatalogPlugin, Array[String]) = {
    val catalogs = session.sessionState.catalogManager
    parts match {
      case Nil => (catalogs.currentCatalog, catalogs.currentNamespace)
      case head +: rest if catalogs.isCatalogRegistered(head) => (catalogs.catalog(head), rest.toArray)
      case other => (catalogs.currentCatalog, other.toArray)
    }
  }

  /** The tables where one of that name was looked for. */
  private def beside(session: SparkSession, parts: Seq[String]): Seq[String] = Try(namespace(session, parts.init)).toOption.toSeq.flatMap {
    case (catalog: TableCatalog, names) => Try(catalog.listTables(names).map(_.name).toSeq).getOrElse(Nil)
    case _ => Nil
  }

  private def withoutAlias(plan: LogicalPlan): LogicalPlan = plan match {
    case alias: SubqueryAlias => withoutAlias(alias.child)
    // Hudi puts the columns of its partitioned tables in order, Spark pads those that are CHAR.
    case Project(columns, child) => withoutAlias(child) match {
      case relation: LogicalRelation if ReadColumns.all(columns, child) => relation
      case _ => plan
    }
    case other => other
  }

  /** Inside a persistent view, short names mean the catalog and namespace in which the view was made. */
  private def fromInsideView(session: SparkSession, parts: Seq[String]): Seq[String] = {
    val ofView = AnalysisContext.get.catalogAndNamespace
    def startsWithCatalog = parts.length > 1 && session.sessionState.catalogManager.isCatalogRegistered(parts.head)
    if (ofView.isEmpty || startsWithCatalog) parts else if (parts.length == 1) ofView ++ parts else ofView.head +: parts
  }
}
