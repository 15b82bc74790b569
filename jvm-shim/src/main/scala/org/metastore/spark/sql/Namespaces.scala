package org.metastore.spark.sql

import scala.util.Try

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, SupportsNamespaces}

/** Databases, as catalogs tell of them. */
object Namespaces {
  private val NotFound = Set("NoSuchNamespaceException", "NoSuchDatabaseException")

  /** Whether what a catalog raised when asked for a namespace's tables says that there is no such namespace. */
  def isMissing(catalog: CatalogPlugin, namespace: Array[String], raised: Throwable): Boolean =
    NotFound(raised.getClass.getSimpleName) || (catalog match {
      case known: SupportsNamespaces => Try(known.namespaceExists(namespace)).toOption.contains(false)
      case _ => false
    })

  /** The last parts of the names of the namespaces beside one. */
  def beside(catalog: CatalogPlugin, namespace: Array[String]): Seq[String] = catalog match {
    case known: SupportsNamespaces => Try(known.listNamespaces(namespace.dropRight(1)).toSeq).getOrElse(Nil).flatMap(_.lastOption)
    case _ => Nil
  }
}
