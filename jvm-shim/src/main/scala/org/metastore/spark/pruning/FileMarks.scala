package org.metastore.spark.pruning

/** Marks of files that no condition excludes; other marks are places of conditions. */
private[pruning] object FileMarks {

  /** Nothing excludes the file. */
  val Kept = -1

  /** The file has no rows. */
  val Empty = -2
}
