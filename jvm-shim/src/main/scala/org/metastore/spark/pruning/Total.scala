package org.metastore.spark.pruning

import java.math.{BigDecimal, BigInteger}
import java.util.BitSet

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BindReferences
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Average, Sum}
import org.apache.spark.sql.types._

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{ColumnSummary, ColumnSums, FileSetStatistics}
import org.metastore.spark.statistics.objects.{DecimalBytes, Values}

/**
 * SUM or AVG of integers, or of decimals or their digits. Spark may add values in any order: the result is
 * the same if no partial sum overflows and, for AVG of integers, no double is rounded. The number of values
 * times the greatest absolute value limits all partial sums.
 *
 * @param most  the greatest absolute value that a partial sum may have
 * @param value the result, computed from the exact unscaled sum and the number of values, which is not 0
 * @param parts the parts of the result that are merged
 */
private[pruning] final case class Total(
    column: ColumnReference,
    most: BigInteger,
    value: (BigInteger, Long) => Option[Any],
    parts: TotalParts)
  extends WholeFileMeasure {
  override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

  override def computeWhole(files: FileSetStatistics, selected: BitSet): MeasuredFiles =
    FileMeasure.measured(files, column) { summary =>
      new Summed(summary, files.sums(column.key, column.dataType).toOption)
    }

  private final class Summed(summary: ColumnSummary, sums: Option[ColumnSums]) extends MeasuredFiles {
    private val bounds = summary.bounds

    override def isKnown(file: Int): Boolean =
      FileMeasure.isKnown(summary, file)(hasSum(file) && bounds.hasBoth(file) && isPossible(file))

    private def hasSum(file: Int): Boolean = sums.exists(_.sums(file) != null)

    override def total(files: BitSet): Option[Any] = {
      val (sum, count) = sumOf(files)
      if (count == 0) Some(null)
      else if (partialSumLimit(files).compareTo(most) > 0) None
      else value(sum, count)
    }

    override def parts(files: BitSet, rowsRead: Map[Int, Long]): Option[Seq[Any]] = {
      var limit = partialSumLimit(files)
      for ((file, rows) <- rowsRead) limit = limit.add(times(magnitude(file), rows))
      Optional.when(rowsRead.values.forall(_ >= 0) && limit.compareTo(most) <= 0) {
        val (exact, count) = sumOf(files)
        val merged = Total.this.parts
        val sum = if (count == 0) null else merged.sum(exact)
        if (merged.isCounted) Seq(sum, count) else Seq(sum)
      }
    }

    private def sumOf(files: BitSet): (BigInteger, Long) = {
      var (sum, count) = (BigInteger.ZERO, 0L)
      files.stream.filter(!summary.isAllNull(_)).forEach { file =>
        sum = sum.add(sums.get.sums(file))
        count += countOf(file)
      }
      (sum, count)
    }

    private def partialSumLimit(files: BitSet): BigInteger = {
      var sum = BigInteger.ZERO
      files.stream.filter(!summary.isAllNull(_)).forEach(file =>
        sum = sum.add(times(magnitude(file), countOf(file))))
      sum
    }

    /** The greatest absolute value that a value of a file may have. */
    private def magnitude(file: Int): BigInteger =
      if (summary.hasStatistics(file) && bounds.hasBoth(file))
        Total.unscaled(bounds.los, file).abs.max(Total.unscaled(bounds.his, file).abs)
      else Total.mostOfType(column.dataType)

    // A sum that the bounds rule out is wrong, or the bounds are.
    private def isPossible(file: Int): Boolean = {
      val sum = sums.get.sums(file)
      val count = countOf(file)
      times(Total.unscaled(bounds.los, file), count).compareTo(sum) <= 0 &&
      sum.compareTo(times(Total.unscaled(bounds.his, file), count)) <= 0
    }

    private def countOf(file: Int): Long = summary.rows(file) - summary.nulls(file)

    private def times(value: BigInteger, count: Long): BigInteger = value.multiply(BigInteger.valueOf(count))
  }
}

/**
 * The parts of a SUM or AVG that are merged.
 *
 * @param sum       converts the exact unscaled sum to the value that Spark adds
 * @param isCounted whether the number of values is a part too
 */
private[pruning] final case class TotalParts(sum: BigInteger => Any, isCounted: Boolean = false)

private[pruning] object Total {

  /**
   * The measure for SUM or AVG of a column; None for types whose sums depend on the order of their values.
   */
  def fromFunction(column: ColumnReference, function: AggregateFunction): Option[Total] =
    (function, function.children.head.dataType, function.dataType) match {
      case (_: Sum, ByteType | ShortType | IntegerType | LongType, _) =>
        Some(Total(
          column,
          BigInteger.valueOf(Long.MaxValue),
          (sum, _) => Some(sum.longValueExact),
          TotalParts(_.longValueExact)))
      case (_: Sum, _: DecimalType, result: DecimalType) =>
        Some(Total(
          column,
          mostOf(result),
          (sum, _) => Some(decimal(sum, result)),
          TotalParts(decimal(_, result))))
      case (_: Average, ByteType | ShortType | IntegerType | LongType, _) =>
        Some(Total(
          column,
          MostOfDoubles,
          (sum, count) => Some(sum.doubleValue / count.toDouble),
          TotalParts(_.doubleValue, isCounted = true)))
      case (average: Average, _: DecimalType, _) =>
        val sumType = sumOf(average)
        Some(Total(
          column,
          mostOf(sumType),
          meanOfDecimals(average, _, _),
          TotalParts(decimal(_, sumType), isCounted = true)))
      case _ => None
    }

  private def meanOfDecimals(average: Average, sum: BigInteger, count: Long): Option[Any] = {
    val row = InternalRow(decimal(sum, sumOf(average)), count)
    Option(BindReferences.bindReference(average.evaluateExpression, average.aggBufferAttributes).eval(row))
  }

  private def unscaled(values: Values, file: Int): BigInteger = values match {
    case Values.Longs(numbers) =>
      BigInteger.valueOf(numbers(file))
    case Values.Bytes(decimals) =>
      DecimalBytes.unscaled(decimals(file))
  }

  private def sumOf(average: Average): DecimalType =
    average.aggBufferAttributes.head.dataType.asInstanceOf[DecimalType]

  private def decimal(unscaled: BigInteger, dataType: DecimalType): Decimal =
    Decimal(new BigDecimal(unscaled, dataType.scale), dataType.precision, dataType.scale)

  private def mostOfType(dataType: DataType): BigInteger = dataType match {
    case decimal: DecimalType =>
      mostOf(decimal)
    case integer =>
      BigInteger.ONE.shiftLeft(8 * integer.defaultSize - 1)
  }

  private def mostOf(result: DecimalType): BigInteger =
    BigInteger.TEN.pow(result.precision).subtract(BigInteger.ONE)

  private val MostOfDoubles = BigInteger.ONE.shiftLeft(53)
}
