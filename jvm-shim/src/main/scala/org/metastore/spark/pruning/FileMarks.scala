package org.metastore.spark.pruning

/** The marks of files that no condition excludes; the mark of another file is the index of its condition. */
private[pruning] object FileMarks {

  /** Nothing excludes the file. */
  val Kept = -1

  /** The file has no rows. */
  val Empty = -2
}
