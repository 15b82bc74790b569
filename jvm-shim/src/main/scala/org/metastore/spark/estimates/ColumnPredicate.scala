package org.metastore.spark.estimates

import java.util.concurrent.TimeoutException

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.ValuePredicate
import org.metastore.spark.reason.{Attempt, Optional}
import org.metastore.spark.statistics.columns.TypePromotion
import org.metastore.spark.statistics.objects.UnsignedOrder
import org.metastore.spark.statistics.values.{Axis, Bucket, ColumnHistogram}

/** Applies a condition on one column to the column's histogram. */
private[estimates] final class ColumnPredicate(condition: Expression, leaf: Expression) {
  import ColumnPredicate._

  private val dataType = leaf.dataType
  private val predicate = new ValuePredicate(condition, leaf)

  private def holds(value: Any): Boolean = predicate.holds(value)

  /** The rows for which the condition is true. Throws what the expression throws, and TimeoutException. */
  def select(column: ColumnHistogram): ColumnHistogram =
    column.derived(predicate.bound.canonicalized)(selectRows(column))

  private def selectRows(column: ColumnHistogram): ColumnHistogram = {
    val literals = cutsOn(column.axis)
    val cuts = distinctCuts(literals)
    val (singles, ranges) = column.buckets.partition(_.isSingle)
    if (ranges.length.toLong * (literals.length + 1) > MostParts)
      throw new TimeoutException("a condition has too many literals for as many files")
    val matchingSingles = selectSingles(singles, cuts.map(_.position))
    val matchingRanges =
      if (isPlain) cutRanges(ranges, cuts, column) else sampleRanges(ranges.toIndexedSeq)
    val nan: Any = if (dataType == FloatType) Float.NaN else Double.NaN
    val nulls = rowsOfValue(column.nulls, null)
    val nans = rowsOfValue(column.nans, nan)
    column.withBuckets((matchingSingles ++ matchingRanges).sorted(Bucket.order), nulls, nans)
  }

  /** The rows of a value for which the condition is true. */
  private def rowsOfValue(rows: Double, value: Any): Double = if (rows > 0 && holds(value)) rows else 0

  /** The single values that match. A plain comparison has one result for all values between two literals. */
  private def selectSingles(singles: Array[Bucket], cuts: Array[Double]): Array[Bucket] =
    if (!isPlain || !isOrdered) singles.filter(bucket => holds(bucket.lo))
    else {
      val selected = Array.newBuilder[Bucket]
      val ends = cuts :+ Double.PositiveInfinity
      var first = 0
      var end = 0
      while (first < singles.length) {
        while (ends(end) < singles(first).from) end += 1
        var next = first + 1
        // A value may have the same position as a literal, and differ from it.
        while (next < singles.length && singles(next).from < ends(end)) next += 1
        if (holds(singles(first).lo)) selected ++= singles.slice(first, next)
        first = next
      }
      selected.result()
    }

  /** Whether comparisons follow the order of the axis: not for BOOLEAN, nor for texts with a collation. */
  private def isOrdered: Boolean = dataType != BooleanType && !TypePromotion.isCollated(dataType)

  /** Whether the condition only compares values with literals. */
  private lazy val isPlain: Boolean = compares(condition)

  private def compares(part: Expression): Boolean = part match {
    case StartsWith(child, _: Literal) =>
      child.semanticEquals(leaf)
    case _: And | _: Or | _: Not | _: In | _: InSet | _: BinaryComparison |
        _: IsNull | _: IsNotNull | _: IsNaN | _: Literal =>
      part.children.forall(compares)
    case other =>
      other.semanticEquals(leaf)
  }

  /** The parts of ranges that match, by samples of their values. Never none: samples may miss matches. */
  private def sampleRanges(ranges: Seq[Bucket]): Seq[Bucket] = {
    if (ranges.exists(bucket => isCut(bucket.hi)))
      throw new IllegalArgumentException("the values of long texts are known by their beginnings alone")
    val samples = ranges.map(sampleRange)
    val selected = samples.flatMap(scaleBucket(_))
    val number = samples.map(_.samples.size).sum
    if (selected.nonEmpty) selected
    else ranges.map { bucket =>
      val distinct = math.max(1.0, bucket.distinct / 2 / number)
      bucket.copy(rows = bucket.rows / 2 / number, distinct = distinct)
    }
  }

  private def sampleRange(bucket: Bucket): BucketSample = dataType match {
    case _: StringType | BinaryType =>
      BucketSample(bucket, Seq(bucket.hi))
    case _ =>
      BucketSample(bucket, inside(bucket.lo, bucket.hi) :+ bucket.hi)
  }

  /** The literals of the condition in the order of the axis: between two, its result rarely changes. */
  private def cutsOn(axis: Axis): Array[Cut] = {
    val literals = condition.collect {
      case Literal(value, `dataType`) => Seq(value)
      case InSet(child, list) if child.semanticEquals(leaf) => list.toSeq
    }.flatten
    val ends = literals.collect { case text: UTF8String if text.numBytes > 0 => afterPrefix(text) }
    val values = (literals ++ ends.flatten).filterNot(value => value == null || ColumnHistogram.isNaN(value))
    values.map(value => Cut(axis.at(value), value)).sortBy(_.position).toArray
  }

  /** The first literal of each position. */
  private def distinctCuts(cuts: Array[Cut]): Array[Cut] =
    for ((cut, i) <- cuts.zipWithIndex if i == 0 || cuts(i - 1).position != cut.position) yield cut

  /** Cuts ranges at the literals inside them, and scales each part. */
  private def cutRanges(ranges: Array[Bucket], cuts: Array[Cut], column: ColumnHistogram): Seq[Bucket] = {
    val selected = mutable.ArrayBuffer.empty[Bucket]
    for {
      i <- ranges.indices
      part <- parts(ranges(i), cuts, column, isFirst = i == 0)
    } selected ++= scaleBucket(part)
    selected.toSeq
  }

  private def parts(
      bucket: Bucket,
      cuts: Array[Cut],
      column: ColumnHistogram,
      isFirst: Boolean): Seq[BucketSample] = {
    val inside = cutsWithin(cuts, bucket, isFirst)
    if (inside.isEmpty) Seq(BucketSample(bucket, Seq(bucket.hi))) // all values have the same result
    else {
      val rowsOfValue = bucket.rows / math.max(1.0, bucket.distinct)
      val points = for (cut <- inside if !column.hasSingle(cut.position, cut.value))
        yield BucketSample(Bucket.single(cut.value, cut.position, rowsOfValue), Seq(cut.value))
      val remaining = math.max(0.0, bucket.rows - rowsOfValue * points.size)
      points ++ between(bucket, spans(bucket, inside, column.axis.unit), remaining)
    }
  }

  /** The parts of a bucket from each literal to the next, without parts of no width. */
  private def spans(bucket: Bucket, inside: Seq[Cut], unit: Double): Seq[Span] = {
    val cuts = (Cut(bucket.from, bucket.lo) +: inside :+ Cut(bucket.until, bucket.hi)).toIndexedSeq
    val spans = (0 to inside.size).map { i =>
      val (from, until) = (cuts(i), cuts(i + 1))
      val isOpen = i < inside.size // the last part includes its end
      val width = until.position - from.position - (if (isOpen) unit else 0)
      Span(from, until, math.max(0.0, width), isOpen)
    }
    spans.filter(_.width > 0)
  }

  private def between(bucket: Bucket, spans: Seq[Span], rows: Double): Seq[BucketSample] = {
    val width = spans.map(_.width).sum
    spans.map { span =>
      val share = span.width / width
      val part = Bucket(
        lo = span.from.value,
        hi = span.until.value,
        from = span.from.position,
        until = span.until.position,
        rows = rows * share,
        distinct = math.max(1.0, bucket.distinct * share))
      BucketSample(part, Seq(inner(part.lo, part.hi, span.isOpen)))
    }
  }

  /** The literals inside a bucket. */
  private def cutsWithin(cuts: Array[Cut], bucket: Bucket, isFirst: Boolean): Seq[Cut] = {
    def isAboveStart(cut: Cut): Boolean = cut.position > bucket.from || isFirst && cut.position == bucket.from
    cuts.filter(cut => cut.position <= bucket.until && isAboveStart(cut)).toSeq
  }

  /** The part of a bucket whose values satisfy the condition, by the share of its samples that do. */
  private def scaleBucket(part: BucketSample): Option[Bucket] = {
    val matching = part.samples.count(holds)
    val share = matching.toDouble / part.samples.size
    Optional.when(matching > 0) {
      val distinct = math.max(1.0, part.bucket.distinct * share)
      part.bucket.copy(rows = part.bucket.rows * share, distinct = distinct)
    }
  }

  /** A value strictly between two, or the upper end if it is no literal. */
  private def inner(lo: Any, hi: Any, isOpen: Boolean): Any =
    if (isOpen) inside(lo, hi).headOption.getOrElse(lo)
    else hi

  /** Values strictly between two; all of them if they are few whole numbers. */
  private def inside(lo: Any, hi: Any): Seq[Any] = (lo, hi) match {
    case (a: Int, b: Int) if b.toLong - a <= Few =>
      (a + 1) until b
    case (a: Long, b: Long) if b > a && BigInt(b) - a <= Few =>
      (a + 1) until b
    case _ =>
      for {
        share <- Shares
        value <- middle(lo, hi, share)
        if value != lo && value != hi
      } yield value
  }

  private def middle(lo: Any, hi: Any, share: Double): Option[Any] = lo match {
    case text: UTF8String =>
      Some(UTF8String.concat(text, UTF8String.fromString("0")))
    case _ =>
      Bucket.middle(lo, hi, share)
  }
}

private[estimates] object ColumnPredicate {
  private val MostParts = 1L << 20
  private val CutBytes = 60 // longer texts may have been shortened in bounds and edges
  private val Shares = Seq(0.2, 0.5, 0.8)
  private val Few = 32 // in each of a thousand bins

  /** The rows of a column for which its conditions are true; None if one fails on a value, as under ANSI. */
  def select(
      column: ColumnHistogram,
      conditions: Seq[Expression],
      leaf: Expression): Option[ColumnHistogram] =
    Attempt.orNone {
      if (conditions.isEmpty) column
      else new ColumnPredicate(conditions.reduceLeft(And(_, _)), leaf).select(column)
    }

  /** A literal and its position on the axis of a column. */
  private final case class Cut(position: Double, value: Any)

  /** The values between two literals; an open span does not include the upper one. */
  private final case class Span(from: Cut, until: Cut, width: Double, isOpen: Boolean)

  /** A bucket, and samples of its values. */
  private final case class BucketSample(bucket: Bucket, samples: Seq[Any])

  private def isCut(value: Any): Boolean =
    value match {
      case text: UTF8String => text.numBytes >= CutBytes
      case _ => false
    }

  /** The end of the texts that begin with a literal; for a LIKE pattern also both ends of its prefix. */
  private def afterPrefix(text: UTF8String): Seq[UTF8String] = {
    val bytes = text.getBytes
    val plain = bytes.takeWhile(b => b != '%' && b != '_')
    val hasWildcard = plain.length < bytes.length
    val ends = mutable.LinkedHashSet.empty[UTF8String]
    for {
      prefix <- Seq(bytes, plain)
      next <- UnsignedOrder.afterPrefix(prefix)
    } {
      ends += UTF8String.fromBytes(next)
      if (hasWildcard) ends += UTF8String.fromBytes(plain)
    }
    ends.toSeq
  }
}
