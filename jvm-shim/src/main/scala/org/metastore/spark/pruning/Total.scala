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
 * SUM or AVG of integers, or of decimals or their digits. Whatever order Spark adds values in, it finds the same where no sum of
 * some of them can overflow, nor, where it adds doubles, be rounded: the number of values times the greatest of them says so.
 *
 * @param most  no sum may be farther from zero
 * @param value of the exact sum, unscaled, and of how many values it is, at least one
 * @param parts the same to be merged: the sum, and of AVG the count
 */
private[pruning] final case class Total(
    column: ColumnReference,
    most: BigInteger,
    value: (BigInteger, Long) => Option[Any],
    parts: TotalParts)
  extends WholeFileMeasure {
  override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

  override def computeWhole(files: FileSetStatistics, among: BitSet): MeasuredFiles =
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
      else if (farthest(files).compareTo(most) > 0) None
      else value(sum, count)
    }

    override def parts(files: BitSet, others: Map[Int, Long]): Option[Seq[Any]] = {
      var all = farthest(files)
      for ((file, rows) <- others) all = all.add(times(magnitude(file), rows))
      Optional.when(others.values.forall(_ >= 0) && all.compareTo(most) <= 0) {
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

    private def farthest(files: BitSet): BigInteger = {
      var sum = BigInteger.ZERO
      files.stream.filter(!summary.isAllNull(_)).forEach(file =>
        sum = sum.add(times(magnitude(file), countOf(file))))
      sum
    }

    /** No value of a file is farther from zero. */
    private def magnitude(file: Int): BigInteger =
      if (summary.hasStatistics(file) && bounds.hasBoth(file))
        Total.unscaled(bounds.los, file).abs.max(Total.unscaled(bounds.his, file).abs)
      else Total.mostOfType(column.dataType)

    // A sum that its bounds exclude contradicts them.
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
 * What is merged of a SUM or AVG.
 *
 * @param sum       of the exact sum, unscaled, the value that Spark adds
 * @param isCounted whether the number of values is asked for too
 */
private[pruning] final case class TotalParts(sum: BigInteger => Any, isCounted: Boolean = false)

private[pruning] object Total {

  /** The measure that SUM or AVG of a column is; None for types whose sums depend on their order. */
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
