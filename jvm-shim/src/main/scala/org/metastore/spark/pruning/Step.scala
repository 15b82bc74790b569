package org.metastore.spark.pruning

import java.math.BigInteger

import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.LiteralValues.Key
import org.metastore.spark.reason.Attempt.orNone
import org.metastore.spark.statistics.columns.{
  Bounds, BytesBounds, CatalystValue, LongBounds, NoBounds, TypePromotion
}
import org.metastore.spark.statistics.objects.{DecimalBytes, Encoding}

/** Maps the bounds of a value to the bounds of a monotone function of it. */
private[pruning] sealed trait Step extends (Bounds => Bounds) {

  /** Whether the function may be NULL for a value; it never is between two bounds with known results. */
  def mayGiveNull: Boolean = false
}

private[pruning] object Step {

  /**
   * A function that never decreases and is defined nearly everywhere. If it fails on a bound, that bound is
   * unknown. A widened bound (`low` and `high` differ) keeps its exact flag. The flag matters only if lo =
   * hi: then all values are equal.
   */
  final case class Monotone(low: Long => Long, high: Long => Long) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      if (from.hasLo(i)) orNone(low(from.lo(i))).foreach(to.setLo(i, _, from.loExact(i)))
      if (from.hasHi(i)) orNone(high(from.hi(i))).foreach(to.setHi(i, _, from.hiExact(i)))
    }
  }

  object Monotone {
    def exactly(function: Long => Long): Monotone = Monotone(function, function)
  }

  /**
   * Integer arithmetic. It must not overflow for either bound, or both are unknown: values between the bounds
   * might overflow too. An unknown bound counts as the least or the greatest integer.
   */
  final case class Arithmetic(function: Long => Long, falling: Boolean) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      for ((loResult, hiResult) <- orNone((function(from.lo(i)), function(from.hi(i))))) {
        if (falling) {
          to.setLo(i, hiResult, from.hiExact(i))
          to.setHi(i, loResult, from.loExact(i))
        } else {
          to.setLo(i, loResult, from.loExact(i))
          to.setHi(i, hiResult, from.hiExact(i))
        }
      }
    }
  }

  /** The absolute value of integers; `check` throws if the type lacks it. Both bounds must be known. */
  final case class Absolute(check: Long => Long) extends Step {
    override def apply(bounds: Bounds): Bounds = mapKnown(bounds) { (from, to, i) =>
      for ((loResult, hiResult) <- orNone((check(absolute(from.lo(i))), check(absolute(from.hi(i)))))) {
        val isLoFarther = loResult > hiResult
        if (from.hi(i) <= 0) to.setLo(i, math.min(loResult, hiResult), from.hiExact(i))
        else if (from.lo(i) >= 0) to.setLo(i, math.min(loResult, hiResult), from.loExact(i))
        else to.setLo(i, 0, exact = false)
        to.setHi(i, math.max(loResult, hiResult), if (isLoFarther) from.loExact(i) else from.hiExact(i))
      }
    }

    // Java's own absExact came with 15, and Spark 3.5 runs on 11.
    private def absolute(value: Long): Long = if (value < 0) Math.negateExact(value) else value
  }

  /** A part of a date, such as its month, for bounds within one larger part, such as a year. */
  final case class Within(larger: Int => Int, part: Int => Int) extends Step {
    override def apply(bounds: Bounds): Bounds = mapKnown(bounds) { (from, to, i) =>
      val (lo, hi) = (from.lo(i).toInt, from.hi(i).toInt)
      if (larger(lo) == larger(hi)) {
        to.setLo(i, part(lo).toLong, from.loExact(i))
        to.setHi(i, part(hi).toLong, from.hiExact(i))
      }
    }
  }

  /** A function that Spark evaluates. A widened bound keeps its exact flag, as in `Monotone`. */
  final case class SparkFunction(function: MonotoneFunction, from: DataType, to: DataType) extends Step {
    override def mayGiveNull: Boolean = !function.isTotal

    override def apply(bounds: Bounds): Bounds = {
      val evaluate = function.evaluator(from)
      val images = Array.tabulate(bounds.los.length)(image(bounds, _, evaluate))
      if (TypePromotion.encoding(to).contains(Encoding.BinaryValues)) Image.bytes(images, bounds)
      else Image.longs(images, bounds)
    }

    private def image(bounds: Bounds, i: Int, evaluate: Any => Option[Any]): Image = {
      def loResult = evaluate(function.earliest(CatalystValue.ordered(bounds.los, i, from)))
      def hiResult = evaluate(function.latest(CatalystValue.ordered(bounds.his, i, from)))
      val lo = if (bounds.hasLo(i)) key(loResult) else None
      val hi = if (bounds.hasHi(i)) key(hiResult) else None
      val areBothKnown = lo.isDefined && hi.isDefined
      if (areBothKnown || function.isTotal) Image(lo, hi) else Image(None, None)
    }

    private def key(result: => Option[Any]): Option[Key] =
      orNone(result.flatMap(LiteralValues.key(_, to))).flatten
  }

  /** Unscaled decimals up to 18 digits times 10^digits, as decimals of more than 18. */
  final case class ToLongDecimal(digits: Int) extends Step {
    private val factor = BigInteger.TEN.pow(digits)

    override def apply(bounds: Bounds): Bounds = bounds match {
      case longs: LongBounds =>
        new BytesBounds(rescaleLongs(longs.lo, longs.hasLo), rescaleLongs(longs.hi, longs.hasHi), longs.flags)
      case bytes: BytesBounds =>
        new BytesBounds(bytes.lo.map(rescaleBytes), bytes.hi.map(rescaleBytes), bytes.flags)
      case NoBounds => NoBounds
    }

    private def rescaleLongs(values: Array[Long], isKnown: Int => Boolean): Array[Array[Byte]] =
      Array.tabulate(values.length) { i =>
        if (isKnown(i)) rescale(BigInteger.valueOf(values(i))) else null
      }

    private def rescaleBytes(value: Array[Byte]): Array[Byte] =
      if (value == null) null else rescale(DecimalBytes.unscaled(value))

    private def rescale(unscaled: BigInteger): Array[Byte] =
      DecimalBytes.fromUnscaled(unscaled.multiply(factor))
  }

  /** Builds bounds that are unknown until they are set. */
  private final class Target(length: Int) {
    val bounds = new LongBounds(
      Array.fill(length)(Long.MinValue),
      Array.fill(length)(Long.MaxValue),
      new Array[Byte](length))

    def setLo(i: Int, value: Long, exact: Boolean): Unit = {
      bounds.lo(i) = value
      setFlags(i, if (exact) Bounds.HasLo | Bounds.LoExact else Bounds.HasLo)
    }

    def setHi(i: Int, value: Long, exact: Boolean): Unit = {
      bounds.hi(i) = value
      setFlags(i, if (exact) Bounds.HasHi | Bounds.HiExact else Bounds.HasHi)
    }

    private def setFlags(i: Int, flags: Int): Unit =
      bounds.flags(i) = (bounds.flags(i) | flags).toByte
  }

  /** The results of a function for the bounds of a file. */
  private final case class Image(lo: Option[Key], hi: Option[Key])

  private object Image {

    /** Integer bounds, as exact as those of the argument. */
    def longs(images: Array[Image], source: Bounds): Bounds = {
      val to = new Target(images.length)
      for (i <- images.indices) {
        for (key <- images(i).lo) to.setLo(i, key.toLong, source.loExact(i))
        for (key <- images(i).hi) to.setHi(i, key.toLong, source.hiExact(i))
      }
      to.bounds
    }

    /** Byte string bounds, as exact as those of the argument. */
    def bytes(images: Array[Image], source: Bounds): Bounds = {
      val flags = Array.tabulate(images.length) { i =>
        val loFlag = if (source.loExact(i)) Bounds.LoExact else 0
        val hiFlag = if (source.hiExact(i)) Bounds.HiExact else 0
        (loFlag | hiFlag).toByte
      }
      new BytesBounds(images.map(image => toBytes(image.lo)), images.map(image => toBytes(image.hi)), flags)
    }

    private def toBytes(key: Option[Key]): Array[Byte] = key.map(_.toBytes).orNull
  }

  /** Maps the bounds of the files in which both are known. */
  private def mapKnown(bounds: Bounds)(put: (LongBounds, Target, Int) => Unit): Bounds =
    mapLongs(bounds) { (from, to, i) =>
      if (from.hasBoth(i)) put(from, to, i)
    }

  private def mapLongs(bounds: Bounds)(put: (LongBounds, Target, Int) => Unit): Bounds = {
    val from = bounds.asInstanceOf[LongBounds]
    val length = from.flags.length
    val to = new Target(length)
    var i = 0
    while (i < length) {
      put(from, to, i)
      i += 1
    }
    to.bounds
  }
}
