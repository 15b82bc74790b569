package org.metastore.spark.tables

import scala.util.Try

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}

/** Iceberg's catalogs behind Spark's, by reflection. */
private[tables] object IcebergCatalogs {
  private val Caching = "org.apache.iceberg.CachingCatalog"
  private val Util = "org.apache.iceberg.spark.Spark3Util"

  /**
   * Loads a table and leaves the one alone that the catalog keeps; None of a path, or where Spark's catalog has none of Iceberg's.
   */
  def load(catalog: CatalogPlugin, identifier: Identifier): Option[AnyRef] =
    for {
      inner <- Try(Reflection.call[AnyRef](catalog, "icebergCatalog")).toOption
      if !Catalogs.isPath(identifier)
    } yield {
      val util = catalog.getClass.getClassLoader.loadClass(Util)
      val name = Reflection.callStatic[AnyRef](util, "identifierToTableIdentifier", identifier)
      Reflection.call[AnyRef](uncached(inner), "loadTable", name)
    }

  private def uncached(catalog: AnyRef): AnyRef =
    if (catalog.getClass.getName == Caching) Reflection.value[AnyRef](catalog, "catalog") else catalog
}
