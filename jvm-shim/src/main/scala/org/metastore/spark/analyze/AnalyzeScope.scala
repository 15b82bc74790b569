package org.metastore.spark.analyze

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.tables.TableFormats

/**
 * Chooses between our ANALYZE, for the formats of `spark.metastore.analyze.formats`, and Spark's, for all
 * others.
 */
object AnalyzeScope {

  /**
   * Whether our ANALYZE serves a table. It also serves a table that we cannot open, to say why; Spark would
   * not.
   */
  def isOurs(session: SparkSession, table: Table): Boolean =
    TableFormats.otherReader(table).isDefined || TableFormats.format(table).exists(isChosen(session, _))

  /** Whether our ANALYZE serves this session-catalog table, by its provider. */
  def isOurs(session: SparkSession, table: TableIdentifier): Boolean =
    formatOf(session, table).exists(isChosen(session, _))

  private def formatOf(session: SparkSession, table: TableIdentifier): Option[String] = for {
    entry <- Try(session.sessionState.catalog.getTableMetadata(table)).toOption
    provider <- entry.provider
    format <- TableFormats.formatOfProvider(provider)
  } yield format

  /** Whether our ANALYZE TABLES serves a namespace: one of its tables is ours. */
  def isOurs(session: SparkSession, catalog: TableCatalog, namespace: Seq[String]): Boolean =
    isOfFormat(session, catalog) || {
      val tables = Try(catalog.listTables(namespace.toArray)).getOrElse(Array.empty[Identifier])
      tables.exists(name => Try(isOurs(session, catalog.loadTable(name))).getOrElse(false))
    }

  private def isOfFormat(session: SparkSession, catalog: TableCatalog): Boolean =
    TableFormats.all.exists(format => format.isCatalog(catalog) && isChosen(session, format.name))

  private def isChosen(session: SparkSession, format: String): Boolean =
    MetastoreConf.fromSession(session).analyzeFormats.contains(format)
}
