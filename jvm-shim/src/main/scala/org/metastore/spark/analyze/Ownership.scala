package org.metastore.spark.analyze

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}

import org.metastore.spark.MetastoreConf
import org.metastore.spark.tables.TableFormats

/** Whose ANALYZE a table gets: ours for the formats of `spark.metastore.analyze.formats`, Spark's for all others. */
object AnalyzeScope {

  /** The name of Spark's own catalog, whoever implements it. */
  val SessionCatalog = "spark_catalog"

  def isOurs(session: SparkSession, table: Table): Boolean =
    TableFormats.format(table).exists(MetastoreConf.of(session).analyzeFormats.contains)

  /** Whose ANALYZE a table gets that Spark knows by what its own catalog holds. */
  def isOurs(session: SparkSession, table: TableIdentifier): Boolean =
    Try(session.sessionState.catalog.getTableMetadata(table)).toOption.flatMap(_.provider).flatMap(TableFormats.ofProvider)
      .exists(MetastoreConf.of(session).analyzeFormats.contains)

  /**
   * Whose ANALYZE TABLES a namespace gets: Spark's where no table is ours.
   */
  def isOurs(session: SparkSession, catalog: TableCatalog, namespace: Seq[String]): Boolean =
    isOfFormat(session, catalog) || Try(catalog.listTables(namespace.toArray)).toOption.exists(_.exists { table =>
      Try(catalog.loadTable(table)).toOption.exists(isOurs(session, _))
    })

  private def isOfFormat(session: SparkSession, catalog: TableCatalog): Boolean =
    catalog.getClass.getName == "org.apache.iceberg.spark.SparkCatalog" && MetastoreConf.of(session).analyzeFormats.contains("iceberg")
}
