package org.metastore.spark.explain

/**
 * How many rows of a scan satisfy its filter, as the optimizer is told.
 *
 * @param source  what they are estimated from: `value counts`, `histogram`, `bounds`, or `row counts` where no condition tells;
 *                `size` where the rows of a file that is read are not counted anywhere
 * @param isExact whether that is their true number
 */
final case class ScanEstimate(rows: Long, source: String, isExact: Boolean)
