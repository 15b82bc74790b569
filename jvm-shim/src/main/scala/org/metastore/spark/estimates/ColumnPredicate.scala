package org.metastore.spark.estimates

import java.util.Arrays
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.ValuePredicate
import org.metastore.spark.statistics.values.{Axis, Bucket, ColumnHistogram}

/** Which rows of a column, by its histogram, a condition on it leaves. */
private[estimates] final class ColumnPredicate(condition: Expression, leaf: Expression) {
  import ColumnPredicate._

  private val dataType = leaf.dataType
  private val predicate = new ValuePredicate(condition, leaf)

  private def holds(value: Any): Boolean = predicate.holds(value)

  /** The rows for which it is true. Raises what evaluating the expression raises, and TimeoutException. */
  def of(column: ColumnHistogram): ColumnHistogram =
    column.derived(predicate.bound.canonicalized)(selectRows(column))

  private def selectRows(column: ColumnHistogram): ColumnHistogram = {
    val cuts = cutsOn(column.axis)
    val (singles, ranges) = column.buckets.partition(_.isSingle)
    if (ranges.length.toLong * (cuts.length + 1) > MostParts)
      throw new TimeoutException("a condition has too many literals for as many files")
    val counted = selectSingles(singles, cuts.map(_._1).distinct)
    val spread =
      if (isPlain) ranges.indices.flatMap(i => parts(ranges(i), cuts, column, i == 0)).flatMap(scaleBucket(_))
      else sampleRanges(ranges.toIndexedSeq)
    val found = (counted ++ spread).sorted(Bucket.order)
    val nan: Any = if (dataType == FloatType) Float.NaN else Double.NaN
    column.of(
      found,
      if (column.nulls > 0 && holds(null)) column.nulls else 0,
      if (column.nans > 0 && holds(nan)) column.nans else 0)
  }

  /** The single values for which it is true: where it only compares, all those between two literals are as the first of them. */
  private def selectSingles(singles: Array[Bucket], cuts: Array[Double]): Array[Bucket] =
    if (!isPlain || !isOrdered) singles.filter(bucket => holds(bucket.lo))
    else {
      val found = Array.newBuilder[Bucket]
      var (first, cut) = (0, 0)
      while (first < singles.length) {
        while (cut < cuts.length && cuts(cut) < singles(first).from) cut += 1
        var next = first + 1
        // Values at the place of a literal may differ from it.
        if (cut == cuts.length) next = singles.length
        else while (next < singles.length && singles(next).from < cuts(cut)) next += 1
        if (holds(singles(first).lo)) found ++= singles.slice(first, next)
        first = next
      }
      found.result()
    }

  /** Whether what lies between two literals compares alike, as neither values of a flag do nor texts of a collation. */
  private def isOrdered: Boolean =
    dataType != BooleanType && (dataType == StringType || !dataType.isInstanceOf[StringType])

  /** Whether nothing is asked but how values compare with literals. */
  private lazy val isPlain: Boolean = {
    def compares(part: Expression): Boolean = part.semanticEquals(leaf) || (part match {
      case _: Literal => true
      case StartsWith(child, _: Literal) => child.semanticEquals(leaf)
      case _: And | _: Or | _: Not | _: In | _: InSet | _: BinaryComparison | _: IsNull | _: IsNotNull | _: IsNaN =>
        part.children.forall(compares)
      case _ => false
    })
    compares(condition)
  }

  /** What any other condition leaves of ranges, by the values that are known of them: never nothing, as few say little. */
  private def sampleRanges(ranges: Seq[Bucket]): Seq[Bucket] = {
    val known =
      ranges.map(bucket => bucket -> (if (isText) Seq(bucket.hi) else samples(bucket.lo, bucket.hi)))
    if (known.exists(_._1.hi match { case text: UTF8String => text.numBytes >= CutBytes; case _ => false })) {
      throw new IllegalArgumentException("the values of long texts are known by their beginnings alone")
    }
    val found = known.map { case (bucket, values) => BucketSample(bucket, values) }.flatMap(scaleBucket(_))
    val number = known.map(_._2.size).sum
    if (found.nonEmpty || number == 0) found
    else ranges.map(bucket =>
      bucket.copy(rows = bucket.rows / 2 / number, distinct = math.max(1.0, bucket.distinct / 2 / number)))
  }

  private def isText: Boolean = dataType.isInstanceOf[StringType] || dataType == BinaryType

  /** The literals of the condition, between which its truth rarely changes, in the order of the axis. */
  private def cutsOn(axis: Axis): Array[(Double, Any)] = {
    val literals = condition.collect {
      case Literal(value, kind) if value != null && kind == dataType => Seq(value)
      case InSet(child, values) if child.semanticEquals(leaf) => values.toSeq.filter(_ != null)
    }.flatten
    val ends = literals.collect { case text: UTF8String if text.numBytes > 0 => afterPrefix(text) }.flatten
    (literals ++ ends).filterNot(
      ColumnHistogram.isNaN).map(value => axis.at(value) -> value).sortBy(_._1).toArray
  }

  /** A bucket at the literals in it: each alone, and what lies between them. */
  private def parts(
      bucket: Bucket,
      cuts: Array[(Double, Any)],
      column: ColumnHistogram,
      isFirst: Boolean): Seq[BucketSample] = {
    val (unit, inside) = (column.axis.unit, within(cuts, bucket, isFirst))
    if (inside.isEmpty) Seq(BucketSample(bucket, Seq(bucket.hi))) // as all of it
    else {
      val each = bucket.rows / math.max(1.0, bucket.distinct)
      val points = inside.collect {
        case (place, value) if !column.hasSingle(place, value) =>
          BucketSample(Bucket.single(value, place, each), Seq(value))
      }
      val places = (bucket.from, bucket.lo) +: inside :+ ((bucket.until, bucket.hi))
      val spans = places.zip(places.tail).zipWithIndex.map { case (((from, lo), (until, hi)), i) =>
        val isOpen = i < inside.size // the end of the last one belongs to it
        (Bucket(lo, hi, from, until, 0, 0), math.max(0.0, until - from - (if (isOpen) unit else 0)), isOpen)
      }.filter(_._2 > 0)
      val (left, width) = (math.max(0.0, bucket.rows - each * points.size), spans.map(_._2).sum)
      val between = spans.map { case (span, size, isOpen) =>
        val share = size / width
        BucketSample(
          span.copy(rows = left * share, distinct = math.max(1.0, bucket.distinct * share)),
          Seq(inner(span.lo, span.hi, isOpen)))
      }
      points ++ between
    }
  }

  private def within(cuts: Array[(Double, Any)], bucket: Bucket, isFirst: Boolean): Seq[(Double, Any)] =
    cuts.iterator.filter { case (place, _) =>
      place <= bucket.until && (place > bucket.from || isFirst && place == bucket.from)
    }
      .foldLeft(List.empty[(Double, Any)]) { (found, cut) =>
        if (found.headOption.exists(_._1 == cut._1)) found else cut :: found
      }
      .reverse

  private def scaleBucket(part: BucketSample): Option[Bucket] = {
    val held = part.samples.count(holds)
    if (held == 0) None
    else {
      val share = held.toDouble / part.samples.size
      Some(part.bucket.copy(
        rows = part.bucket.rows * share,
        distinct = math.max(1.0, part.bucket.distinct * share)))
    }
  }

  /** Values of a range, its upper end the last. */
  private def samples(lo: Any, hi: Any): Seq[Any] = inside(lo, hi) :+ hi

  /** A value strictly between two; the upper end where that is not a literal. */
  private def inner(lo: Any, hi: Any, isOpen: Boolean): Any =
    if (isOpen) inside(lo, hi).headOption.getOrElse(lo) else hi

  /** Values strictly between two: of whole numbers all, where they are few. */
  private def inside(lo: Any, hi: Any): Seq[Any] = (lo, hi) match {
    case (a: Int, b: Int) if b.toLong - a <= Few => (a + 1) until b
    case (a: Long, b: Long) if b > a && BigInt(b) - a <= Few => (a + 1) until b
    case _ => Shares.flatMap(share => middle(lo, hi, share)).filter(value => value != lo && value != hi)
  }

  private def middle(lo: Any, hi: Any, share: Double): Option[Any] = lo match {
    case text: UTF8String => Some(UTF8String.concat(text, UTF8String.fromString("0")))
    case _ => Bucket.middle(lo, hi, share)
  }
}

private[estimates] object ColumnPredicate {
  private val MostParts = 1L << 20
  private val CutBytes = 60 // of texts, about which bounds and edges may be cut
  private val Shares = Seq(0.2, 0.5, 0.8)
  private val Few = 32 // in each of a thousand bins

  /** The rows of a column for which conditions on it alone are true; None where one fails on a value, as under ANSI. */
  def select(
      column: ColumnHistogram,
      conditions: Seq[Expression],
      leaf: Expression): Option[ColumnHistogram] =
    EvaluationFailure.orNone(conditions.reduceOption(And(_, _)).fold(column)(new ColumnPredicate(
      _,
      leaf).of(column)))

  /** Some rows, and values of which some are theirs. */
  private final case class BucketSample(bucket: Bucket, samples: Seq[Any])

  /** The least text above all that begin with one, and with what comes before a wildcard in it. */
  private def afterPrefix(text: UTF8String): Seq[UTF8String] = {
    val bytes = text.getBytes
    val plain = bytes.takeWhile(b => b != '%' && b != '_')
    Seq(bytes, plain).filter(_.nonEmpty).flatMap { prefix =>
      val last = prefix.lastIndexWhere(_ != -1)
      if (last < 0) Nil
      else {
        val next = Arrays.copyOf(prefix, last + 1)
        next(last) = (next(last) + 1).toByte
        Seq(UTF8String.fromBytes(next)) ++ (if (plain.length < bytes.length) Seq(UTF8String.fromBytes(plain))
                                            else Nil)
      }
    }.distinct
  }
}
