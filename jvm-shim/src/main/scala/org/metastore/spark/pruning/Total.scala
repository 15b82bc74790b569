package org.metastore.spark.pruning

import java.math.{BigDecimal, BigInteger}
import java.util.BitSet

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Cast, Divide, Literal}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Average, Sum}
import org.apache.spark.sql.types._

import org.metastore.spark.statistics.columns.{ColumnSummary, ColumnSums, FileSetStatistics}
import org.metastore.spark.statistics.objects.{DecimalBytes, Values}

/**
 * SUM or AVG of integers or decimals. Whatever order Spark adds values in, it finds the same where no sum of some of them can
 * overflow, nor, where it adds doubles, be rounded: the number of values times the greatest of them says so.
 *
 * @param most  no sum may be farther from zero
 * @param value of the exact sum, unscaled, and of how many values it is, at least one
 */
private[pruning] final case class Total(
    column: ColumnReference, most: BigInteger, value: (BigInteger, Long) => Option[Any])
  extends FileMeasure {
  override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

  override def of(files: FileSetStatistics, among: BitSet): MeasuredFiles = FileMeasure.measured(files, column) { summary =>
    new Summed(summary, files.sums(column.key, column.dataType).toOption)
  }

  private final class Summed(summary: ColumnSummary, sums: Option[ColumnSums]) extends MeasuredFiles {
    private val bounds = summary.bounds

    override def isKnown(file: Int): Boolean = FileMeasure.hasNulls(summary, file) && (FileMeasure.isAllNull(summary, file) ||
      sums.exists(_.sums(file) != null) && bounds.hasLo(file) && bounds.hasHi(file) && isPossible(file))

    override def total(files: BitSet): Option[Any] = {
      var (sum, farthest, count) = (BigInteger.ZERO, BigInteger.ZERO, 0L)
      files.stream.filter(!FileMeasure.isAllNull(summary, _)).forEach { file =>
        sum = sum.add(sums.get.sums(file))
        farthest = farthest.add(times(Total.unscaled(bounds.los, file).abs.max(Total.unscaled(bounds.his, file).abs), file))
        count += countOf(file)
      }
      if (count == 0) Some(null) // scalastyle:ignore
      else if (farthest.compareTo(most) > 0) None
      else value(sum, count)
    }

    // A sum that its bounds exclude contradicts them.
    private def isPossible(file: Int): Boolean = {
      val sum = sums.get.sums(file)
      times(Total.unscaled(bounds.los, file), file).compareTo(sum) <= 0 && sum.compareTo(times(Total.unscaled(bounds.his, file), file)) <= 0
    }

    private def countOf(file: Int): Long = summary.rows(file) - summary.nulls(file)

    private def times(value: BigInteger, file: Int): BigInteger = value.multiply(BigInteger.valueOf(countOf(file)))
  }
}

private[pruning] object Total {

  /** The measure that SUM or AVG of a column is; None for types whose sums depend on their order. */
  def of(column: ColumnReference, function: AggregateFunction): Option[Total] = (function, column.dataType) match {
    case (_: Sum, ByteType | ShortType | IntegerType | LongType) =>
      Some(Total(column, BigInteger.valueOf(Long.MaxValue), (sum, _) => Some(sum.longValueExact)))
    case (sum: Sum, _: DecimalType) => sum.dataType match {
        case result: DecimalType => Some(Total(column, mostOf(result), (sum, _) => Some(decimal(sum, result))))
        case _ => None
      }
    case (_: Average, ByteType | ShortType | IntegerType | LongType) =>
      Some(Total(column, MostOfDoubles, (sum, count) => Some(sum.doubleValue / count.toDouble)))
    case (average: Average, of: DecimalType) =>
      val most = if (isShort(of)) MostOfDoubles else mostOf(sumOf(average))
      Some(Total(column, most, meanOfDecimals(average, of, _, _)))
    case _ => None
  }

  // Spark divides doubles where the decimals are short (DecimalAggregates): both ways have to give the same.
  private def meanOfDecimals(average: Average, of: DecimalType, sum: BigInteger, count: Long): Option[Any] = {
    val buffer = average.aggBufferAttributes
    val row = InternalRow(decimal(sum, sumOf(average)), count)
    val exact = BindReferences.bindReference(average.evaluateExpression, buffer).eval(row)
    if (!isShort(of)) Option(exact)
    else {
      val mean = Divide(Literal(sum.doubleValue / count.toDouble), Literal(math.pow(10.0, of.scale)))
      val short = Cast(mean, DecimalType(of.precision + DecimalsAdded, of.scale + DecimalsAdded)).eval()
      Option(exact).filter(_ == short)
    }
  }

  private def unscaled(values: Values, file: Int): BigInteger = values match {
    case Values.Longs(numbers) => BigInteger.valueOf(numbers(file))
    case Values.Bytes(decimals) => DecimalBytes.unscaled(decimals(file))
  }

  private def isShort(of: DecimalType): Boolean = of.precision + DecimalsAdded <= MostDigits

  private def sumOf(average: Average): DecimalType = average.aggBufferAttributes.head.dataType.asInstanceOf[DecimalType]

  private def decimal(unscaled: BigInteger, of: DecimalType): Decimal =
    Decimal(new BigDecimal(unscaled, of.scale), of.precision, of.scale)

  private def mostOf(result: DecimalType): BigInteger = BigInteger.TEN.pow(result.precision).subtract(BigInteger.ONE)

  private val MostOfDoubles = BigInteger.ONE.shiftLeft(53)
  private val DecimalsAdded = 4
  private val MostDigits = 15
}
