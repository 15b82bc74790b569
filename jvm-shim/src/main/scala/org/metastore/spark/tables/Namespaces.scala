package org.metastore.spark.tables

import scala.util.{Success, Try}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, SupportsNamespaces}
import org.apache.spark.sql.internal.{SQLConf, StaticSQLConf}

import org.metastore.spark.reason.{NearNames, SqlName}

/** Databases of the session's catalogs. */
object Namespaces {

  /** The catalog and namespace that the parts of a name stand for; without parts, the current ones. */
  def resolve(session: SparkSession, parts: Seq[String]): (CatalogPlugin, Array[String]) = {
    val catalogs = Catalogs(session)
    parts match {
      case Nil => (catalogs.current, catalogs.currentNamespace)
      case head +: names if catalogs.isRegistered(head) => (catalogs.catalog(head), names.toArray)
      case other => (catalogs.current, other.toArray)
    }
  }

  private val NotFound = Set("NoSuchNamespaceException", "NoSuchDatabaseException")

  /** Whether a catalog's error about a namespace's tables means that the namespace is missing. */
  def isMissing(catalog: CatalogPlugin, namespace: Array[String], raised: Throwable): Boolean =
    NotFound(raised.getClass.getSimpleName) || (catalog match {
      case namespaces: SupportsNamespaces => lacks(namespaces, namespace)
      case _ => false
    })

  private def lacks(catalog: SupportsNamespaces, namespace: Array[String]): Boolean =
    Try(catalog.namespaceExists(namespace)) == Success(false)

  /**
   * A hint that the database or catalog is missing, with those that exist, as the end of a sentence. Empty if
   * the database exists, or if that is unknown.
   */
  def explainMissing(session: SparkSession, parts: Seq[String]): String =
    if (parts.length > 1 && !Catalogs(session).isRegistered(parts.head))
      s" There is no catalog ${SqlName(parts.take(1))}.${hintOfCatalogs(session, parts.head)}"
    else Try(resolve(session, parts)) match {
      case Success((catalog: SupportsNamespaces, names)) if isUnknown(catalog, names) =>
        s" There is no database ${SqlName(parts)}.${hintOfDatabases(catalog, names, parts)}"
      case _ => ""
    }

  private def isUnknown(catalog: SupportsNamespaces, names: Array[String]): Boolean =
    names.nonEmpty && !isOfGlobalViews(names) && lacks(catalog, names)

  private def hintOfDatabases(catalog: CatalogPlugin, names: Array[String], parts: Seq[String]): String = {
    val existing = siblings(catalog, names)
    val near = NearNames.find(names.last, existing)
    def fullNames(databases: Seq[String]) = databases.map(name => SqlName(parts.init :+ name))
    if (near.isEmpty) NearNames.listNames(fullNames(existing))
    else NearNames.phraseSuggestion(fullNames(near))
  }

  /** Whether it is the database of global temporary views, which is in no catalog. */
  private def isOfGlobalViews(names: Array[String]): Boolean =
    names.length == 1 && names.head.equalsIgnoreCase(SQLConf.get.getConf(StaticSQLConf.GLOBAL_TEMP_DATABASE))

  private def hintOfCatalogs(session: SparkSession, name: String): String = {
    val existing = catalogs(session)
    val hint = NearNames.hint(name, existing)
    if (NearNames.find(name, existing).nonEmpty) hint
    else s"$hint A catalog is configured by spark.sql.catalog.$name = <its class>, in a shell by --conf."
  }

  /**
   * The full name of a table in another catalog, as the end of a sentence; empty if the name is full already.
   */
  def nameElsewhere(session: SparkSession, parts: Seq[String]): String = {
    val current = Catalogs(session).current.name
    val catalog = catalogs(session).find(name => name != current && name != Catalogs.SessionCatalog)
    val database = if (parts.length == 1) "<database>" else SqlName(parts.dropRight(1))
    val table = SqlName(parts.takeRight(1))
    val isNamedFully = parts.length > 2 || isOfGlobalViews(parts.dropRight(1).toArray)
    if (isNamedFully || catalog.isEmpty) ""
    else s" A table of another catalog has its name before it: ${SqlName(catalog.toSeq)}.$database.$table."
  }

  private def catalogs(session: SparkSession): Seq[String] =
    session.conf.getAll.keys.collect { case Namespaces.Configured(name) => name }.toSeq.sorted

  private val Configured = raw"spark\.sql\.catalog\.([^.]+)".r

  /** The last parts of the names of the namespaces beside one. */
  def siblings(catalog: CatalogPlugin, namespace: Array[String]): Seq[String] = catalog match {
    case namespaces: SupportsNamespaces =>
      val children = Try(namespaces.listNamespaces(namespace.dropRight(1)).toSeq).getOrElse(Nil)
      for (child <- children; name <- child.lastOption) yield name
    case _ => Nil
  }
}
