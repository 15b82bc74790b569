package org.metastore.spark.reason

import scala.collection.mutable

/** The warnings about the query that a thread plans: rules may run often, and fail each time. */
private[spark] object QueryWarnings {
  private val MostKept = 1000 // of a thread in which no query begins

  private val written =
    ThreadLocal.withInitial[mutable.Set[String]](() => mutable.HashSet.empty[String])

  /** Begins another query in this thread. */
  def begin(): Unit = written.get.clear()

  /** Notes a warning; returns whether the query did not have it yet. */
  def isNew(warning: String): Boolean = {
    val warnings = written.get
    if (warnings.size >= MostKept) warnings.clear()
    warnings.add(warning)
  }
}
