package org.metastore.spark.tables

import scala.util.Try

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}

/** Iceberg's catalogs behind Spark's, by reflection. */
private[tables] object IcebergCatalogs {
  private val Caching = "org.apache.iceberg.CachingCatalog"
  private val Util = "org.apache.iceberg.spark.Spark3Util"

  /**
   * Loads a table past the catalog's cache. None for a path, or if Spark's catalog has no catalog of Iceberg
   * behind it.
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
