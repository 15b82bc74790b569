package org.metastore.spark.scan

import org.metastore.spark.reason.Indexed

/** The adapters of every kind of relation that the statistics know. */
private[scan] object RelationAdapters {
  val all: Seq[RelationAdapter] = ScanFormats.adapters :+ new FileRelationAdapter

  /** The first answer of an adapter about a relation; None where no adapter knows it. */
  def first[A](ask: RelationAdapter => Option[A]): Option[A] = Indexed.firstAnswer(all)(ask)
}
