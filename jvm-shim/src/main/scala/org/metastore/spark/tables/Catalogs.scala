package org.metastore.spark.tables

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}

/**
 * The catalogs of a session, by Spark's `CatalogManager`: a class up to Spark 4.2, a trait since 4.3. A call
 * that the compiler makes to a class fails on a trait, and one build of the shim serves both, so its methods
 * are called by name.
 */
final class Catalogs private (manager: AnyRef) {

  /** A catalog by its name; Spark's own error if it cannot be loaded. */
  def catalog(name: String): CatalogPlugin = Reflection.call[CatalogPlugin](manager, "catalog", name)

  def current: CatalogPlugin = Reflection.call[CatalogPlugin](manager, "currentCatalog")

  def currentNamespace: Array[String] = Reflection.call[Array[String]](manager, "currentNamespace")

  def isRegistered(name: String): Boolean =
    Reflection.call[java.lang.Boolean](manager, "isCatalogRegistered", name)
}

object Catalogs {

  /** The name of Spark's own catalog, whoever implements it. */
  val SessionCatalog = "spark_catalog"

  /** Whether an identifier is the path of a table. */
  def isPath(identifier: Identifier): Boolean = identifier.getClass.getName.endsWith("PathIdentifier")

  def apply(session: SparkSession): Catalogs = new Catalogs(session.sessionState.catalogManager)
}
