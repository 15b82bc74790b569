package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

/** Which types have bounds that agree with Spark's order. */
object ServedTypes {

  /** Whether bounds of the type may decide comparisons; otherwise only its counts say something. */
  def ordered(dataType: DataType): Boolean = TypePromotion.encoding(dataType).isDefined
}
