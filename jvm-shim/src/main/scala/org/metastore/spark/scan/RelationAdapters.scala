package org.metastore.spark.scan

import org.metastore.spark.reason.Indexed

/** The adapters of all kinds of relations. */
private[scan] object RelationAdapters {
  val all: Seq[RelationAdapter] = ScanFormats.adapters :+ new FileRelationAdapter

  /** The first answer of an adapter. */
  def first[A](ask: RelationAdapter => Option[A]): Option[A] = Indexed.firstAnswer(all)(ask)
}
