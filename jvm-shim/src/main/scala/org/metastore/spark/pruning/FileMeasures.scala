package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, UnscaledValue}
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, Average, Complete, Count, Max, Min, Sum
}
import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSummary, ColumnValues, CountedValues, FileSetStatistics
}
import org.metastore.spark.statistics.objects.{DoubleOrder, Values}

/** The aggregate functions that are measures of files. */
object FileMeasures {
  import FileMeasure.measured

  /** The measure of an aggregate function; None if statistics cannot answer it. */
  def fromFunction(function: AggregateExpression, resolver: ColumnResolver): Option[FileMeasure] = {
    val lookup = new ColumnLookup(resolver)
    def column(child: Expression): Option[ColumnReference] = lookup.find(child).toOption
    if (function.mode != Complete || function.filter.isDefined) None
    else function.aggregateFunction match {
      case Count(Seq(child)) if function.isDistinct =>
        lookup.findBounded(child).map(DistinctCount)
      case _ if function.isDistinct => None
      case _ if isRowCount(function) => Some(RowCount)
      case Count(Seq(child)) =>
        column(child).map(NotNullCount)
      case Min(child) =>
        lookup.findBounded(child).map(Extreme(_, least = true))
      case Max(child) =>
        lookup.findBounded(child).map(Extreme(_, least = false))
      case total @ (_: Sum | _: Average) =>
        lookup.findBounded(stripUnscaled(total.children.head)).flatMap(Total.fromFunction(_, total))
      case _ => None
    }
  }

  // Spark adds short decimals by their digits.
  private def stripUnscaled(child: Expression): Expression = child match {
    case UnscaledValue(decimal) => decimal
    case other => other
  }

  /**
   * The number of rows of each group by a column, as pairs of value and count; None for other expressions.
   */
  def fromGrouping(grouping: Expression, resolver: ColumnResolver): Option[FileMeasure] =
    new ColumnLookup(resolver).findBounded(grouping).map(GroupCount)

  /** Whether a function is COUNT(*), also if it is written as COUNT(1). */
  def isRowCount(function: AggregateExpression): Boolean =
    function.aggregateFunction match {
      case Count(Seq(Literal(value, _))) => value != null
      case _ => false
    }

  /** COUNT(*). */
  private object RowCount extends FileMeasure {
    override val columns: Seq[(String, DataType)] = Nil

    override def compute(
        files: FileSetStatistics,
        selected: BitSet,
        deleted: Int => DeletedRows): MeasuredFiles =
      new LiveCounts(files.rows(_), _ => 0L, deleted)
  }

  /** COUNT of a column. */
  private final case class NotNullCount(column: ColumnReference) extends FileMeasure {
    override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

    override def compute(
        files: FileSetStatistics,
        selected: BitSet,
        deleted: Int => DeletedRows): MeasuredFiles =
      measured(files, column) { summary =>
        def nulls(file: Int): Long = if (summary.hasNullCount(file)) summary.nulls(file) else -1L
        new LiveCounts(summary.rows(_), nulls, deleted)
      }
  }

  /** MIN or MAX of a column. */
  private final case class Extreme(column: ColumnReference, least: Boolean) extends FileMeasure {
    override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

    override def compute(
        files: FileSetStatistics,
        selected: BitSet,
        deleted: Int => DeletedRows): MeasuredFiles =
      measured(files, column) { summary =>
        val countsOf = files.valueCounts(column.key, column.dataType, _)
        val live = new LiveBounds(summary, least, selected, deleted)(countsOf)
        new ExactBounds(summary, least, live)
      }
  }

  /** COUNT(DISTINCT) of a column. */
  private final case class DistinctCount(column: ColumnReference) extends WholeFileMeasure {
    override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

    override def computeWhole(files: FileSetStatistics, selected: BitSet): MeasuredFiles =
      measured(files, column) { summary =>
        val values = files.values(
          column.key,
          column.dataType,
          selected.stream.toArray,
          filters = false,
          most = Long.MaxValue)
        new ListedValues(summary, values, fewValues(selected, values.listed(_).map(_.length)))
      }
  }

  /** The number of rows with each value of a column. */
  private final case class GroupCount(column: ColumnReference) extends WholeFileMeasure {
    override val columns: Seq[(String, DataType)] = Seq(column.key -> column.dataType)

    override def computeWhole(files: FileSetStatistics, selected: BitSet): MeasuredFiles =
      measured(files, column) { summary =>
        val counts = files.valueCounts(column.key, column.dataType, selected.stream.toArray)
        new Groups(summary, counts, fewValues(selected, counts.get(_).map(_.values.length)))
      }
  }

  /** The first files whose lists together are short enough to be merged. */
  private def fewValues(selected: BitSet, length: Int => Option[Int]): BitSet = {
    val few = new BitSet
    var remaining = MostListed
    selected.stream.forEach { file =>
      for (values <- length(file)) {
        remaining -= values
        if (remaining >= 0) few.set(file)
      }
    }
    few
  }

  /**
   * Counts of live rows that are not null.
   *
   * @param nulls the number of NULLs of each file; below zero if unknown
   */
  private final class LiveCounts(rows: Int => Long, nulls: Int => Long, deleted: Int => DeletedRows)
    extends MeasuredFiles {
    override def isKnown(file: Int): Boolean = count(file) >= 0

    // Below zero if unknown. The number of deleted rows that are NULL is never known.
    private def count(file: Int): Long = {
      val all = rows(file)
      val nullRows = nulls(file)
      if (all < 0 || nullRows < 0) -1L
      else if (nullRows == all) 0L
      else if (deleted(file).isZero) all - nullRows
      else if (deleted(file).isExactOf(all) && nullRows == 0) deleted(file).liveOf(all)
      else -1L
    }

    override def total(files: BitSet): Option[Any] = {
      var sum = 0L
      files.stream.forEach(file => sum += count(file))
      Some(sum)
    }
  }

  private final class ExactBounds(summary: ColumnSummary, least: Boolean, live: LiveBounds)
    extends MeasuredFiles {
    private val bounds = summary.bounds
    private val edges = bounds.ends(low = least)

    override def isKnown(file: Int): Boolean =
      FileMeasure.isKnown(summary, file) {
        bounds.isExact(file, low = least) && !isZero(file) && live.isLive(file)
      }

    override def total(files: BitSet): Option[Any] = {
      var best = -1
      files.stream.filter(!summary.isAllNull(_)).forEach { file =>
        if (best < 0 || isBefore(file, best)) best = file
      }
      Some(if (best < 0) null else CatalystValue.ordered(edges, best, summary.dataType))
    }

    // Statistics do not distinguish 0.0 and -0.0.
    private def isZero(file: Int): Boolean = edges match {
      case Values.Longs(keys) =>
        summary.isFloatingPoint && keys(file) == DoubleOrder.Zero
      case _ => false
    }

    /** Whether the bound of one file is nearer to the extreme than that of another. */
    private def isBefore(file: Int, other: Int): Boolean = {
      val order = edges.compare(file, edges, other)
      if (least) order < 0 else order > 0
    }
  }

  private final class ListedValues(summary: ColumnSummary, values: ColumnValues, few: BitSet)
    extends MeasuredFiles {
    override def isKnown(file: Int): Boolean =
      FileMeasure.isKnown(summary, file)(!summary.mayHaveNaN(file) && few.get(file))

    override def total(files: BitSet): Option[Any] = Some(distinctValues(files).size.toLong)

    override def parts(files: BitSet, rowsRead: Map[Int, Long]): Option[Seq[Any]] = {
      val different = for ((listed, i) <- distinctValues(files).valuesIterator)
        yield CatalystValue.ordered(listed, i, summary.dataType)
      Some(Seq(DifferentValues(different.toVector)))
    }

    /** The different values by their keys, each as a list of values and an index in it. */
    private def distinctValues(files: BitSet): mutable.LinkedHashMap[Any, (Values, Int)] = {
      val distinct = mutable.LinkedHashMap.empty[Any, (Values, Int)]
      for {
        file <- files.stream.toArray
        if !summary.isAllNull(file)
        listed <- values.listed(file)
        i <- 0 until listed.length
      } distinct.getOrElseUpdate(listed.key(i), (listed, i))
      distinct
    }
  }

  private final class Groups(summary: ColumnSummary, counts: collection.Map[Int, CountedValues], few: BitSet)
    extends MeasuredFiles {
    override def isKnown(file: Int): Boolean =
      FileMeasure.isKnown(summary, file)(few.get(file))

    override def total(files: BitSet): Option[Any] = {
      val groups = mutable.LinkedHashMap.empty[Any, (Any, Long)]
      files.stream.forEach { file =>
        if (summary.nulls(file) > 0) add(None, null, summary.nulls(file), groups)
        if (!summary.isAllNull(file)) {
          val listed = counts(file)
          val values = listed.values
          for (i <- 0 until values.length)
            add(values.key(i), CatalystValue.ordered(values, i, summary.dataType), listed.counts(i), groups)
        }
      }
      Some(groups.values.toSeq)
    }

    private def add(key: Any, value: => Any, rows: Long, to: mutable.LinkedHashMap[Any, (Any, Long)]): Unit =
      to(key) = to.get(key).fold((value, rows)) { case (first, before) => (first, before + rows) }
  }

  private val MostListed = 100000L
}
