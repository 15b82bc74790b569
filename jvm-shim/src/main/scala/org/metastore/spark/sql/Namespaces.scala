package org.metastore.spark.sql

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, SupportsNamespaces}

import org.metastore.spark.NearNames

/** Databases, as catalogs tell of them. */
object Namespaces {
  private val NotFound = Set("NoSuchNamespaceException", "NoSuchDatabaseException")

  /** Whether what a catalog raised when asked for a namespace's tables says that there is no such namespace. */
  def isMissing(catalog: CatalogPlugin, namespace: Array[String], raised: Throwable): Boolean =
    NotFound(raised.getClass.getSimpleName) || (catalog match {
      case known: SupportsNamespaces => Try(known.namespaceExists(namespace)).toOption.contains(false)
      case _ => false
    })

  /**
   * Says that there is no such database or catalog, and which there are, as the end of a sentence; empty where the parts name
   * a database that there is, or nobody knows.
   */
  def explainMissing(session: SparkSession, parts: Seq[String]): String =
    if (parts.length > 1 && !session.sessionState.catalogManager.isCatalogRegistered(parts.head))
      s" There is no catalog ${SqlName(parts.take(1))}.${NearNames.hint(parts.head, catalogs(session))}"
    else Try(TableLookup.namespace(session, parts)).toOption.collect {
      case (catalog: SupportsNamespaces, names) if names.nonEmpty && Try(catalog.namespaceExists(names)).toOption.contains(false) =>
        val known = siblings(catalog, names)
        val near = Some(NearNames.find(names.last, known)).filter(_.nonEmpty)
        def whole(some: Seq[String]) = some.map(name => SqlName(parts.init :+ name))
        s" There is no database ${SqlName(parts)}.${near.fold(NearNames.listNames(whole(known)))(n => NearNames.phraseSuggestion(whole(n)))}"
    }.getOrElse("")

  private def catalogs(session: SparkSession): Seq[String] =
    session.conf.getAll.keys.collect { case Namespaces.Configured(name) => name }.toSeq.sorted

  private val Configured = raw"spark\.sql\.catalog\.([^.]+)".r

  /** The last parts of the names of the namespaces beside one. */
  def siblings(catalog: CatalogPlugin, namespace: Array[String]): Seq[String] = catalog match {
    case known: SupportsNamespaces => Try(known.listNamespaces(namespace.dropRight(1)).toSeq).getOrElse(Nil).flatMap(_.lastOption)
    case _ => Nil
  }
}
