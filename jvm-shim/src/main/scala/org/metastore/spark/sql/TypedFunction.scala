package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow

import org.metastore.spark.store.SummaryRow

/** A table function whose rows are made of stored statistics: the data source shows these, typed, beside the texts. */
trait StatisticsFunction extends TableFunction {

  /** The rows of the function, each with the statistics that it shows, if there are any. */
  def rowsWithStatistics(session: SparkSession, call: Arguments): Seq[(InternalRow, Option[SummaryRow])]
}
