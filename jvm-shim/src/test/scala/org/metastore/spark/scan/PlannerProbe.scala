package org.metastore.spark.scan

import scala.util.control.NonFatal

/** Asks what becomes of an error while a query is planned. */
object PlannerProbe {

  /** What is planned where an estimate fails with a message: something else, or the query ends. */
  def planned(message: String): String =
    try ScanPlanner.orElse("A table", "planned without it")(throw new IllegalStateException(message))
    catch { case NonFatal(_) => "ended" }
}
