package org.metastore.spark.statistics.columns

/** Decoded statistics that stay in the driver's memory. */
private[statistics] trait CacheWeight {

  /** Bytes, about. */
  def weight: Long
}
