package org.metastore.spark.tables

import org.apache.spark.sql.catalyst.analysis.AnalysisContext

/** The catalog and namespace of the view in which names are looked up; empty outside of views. */
private[spark] object ViewNamespace {
  private val threadNamespace = new ThreadLocal[Seq[String]]

  def current: Seq[String] = Option(threadNamespace.get).getOrElse(AnalysisContext.get.catalogAndNamespace)

  /** Runs a body with the namespace of another thread, for which it looks up names. */
  def within[T](namespace: Seq[String])(body: => T): T = {
    threadNamespace.set(namespace)
    try body
    finally threadNamespace.remove()
  }
}
