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

  /** Whether the function may be NULL for a value, as where it overflows; never between two bounds whose results are known. */
  def mayGiveNull: Boolean = false
}

private[pruning] object Step {

  /**
   * A function that never decreases and is defined everywhere, or nearly. Where it fails on a bound, that bound is unknown. Bounds
   * with something given away count as exact too: that they are is of interest where both are one value, which all values then are.
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

  /** Integer arithmetic that may overflow: both bounds must pass, an unknown one as the least or greatest integer, or nothing is. */
  final case class Arithmetic(function: Long => Long, falling: Boolean) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      for ((ofLo, ofHi) <- orNone((function(from.lo(i)), function(from.hi(i))))) {
        if (falling) {
          to.setLo(i, ofHi, from.hiExact(i))
          to.setHi(i, ofLo, from.loExact(i))
        } else {
          to.setLo(i, ofLo, from.loExact(i))
          to.setHi(i, ofHi, from.hiExact(i))
        }
      }
    }
  }

  /** The distance from zero of integers; `check` raises where it is none. Both bounds must be known. */
  final case class Absolute(check: Long => Long) extends Step {
    override def apply(bounds: Bounds): Bounds = mapKnown(bounds) { (from, to, i) =>
      for ((ofLo, ofHi) <- orNone((check(absolute(from.lo(i))), check(absolute(from.hi(i)))))) {
        val isLoFarther = ofLo > ofHi
        if (from.hi(i) <= 0) to.setLo(i, math.min(ofLo, ofHi), from.hiExact(i))
        else if (from.lo(i) >= 0) to.setLo(i, math.min(ofLo, ofHi), from.loExact(i))
        else to.setLo(i, 0, exact = false)
        to.setHi(i, math.max(ofLo, ofHi), if (isLoFarther) from.loExact(i) else from.hiExact(i))
      }
    }

    // Java's own absExact came with 15, and Spark 3.5 runs on 11.
    private def absolute(value: Long): Long = if (value < 0) Math.negateExact(value) else value
  }

  /** A part of a date, such as its month, that never decreases within a larger one, such as its year: where both bounds lie in one. */
  final case class Within(larger: Int => Int, part: Int => Int) extends Step {
    override def apply(bounds: Bounds): Bounds = mapKnown(bounds) { (from, to, i) =>
      val (lo, hi) = (from.lo(i).toInt, from.hi(i).toInt)
      if (larger(lo) == larger(hi)) {
        to.setLo(i, part(lo).toLong, from.loExact(i))
        to.setHi(i, part(hi).toLong, from.hiExact(i))
      }
    }
  }

  /** A function that Spark evaluates; bounds with something given away count as exact, as those of `Monotone` do. */
  final case class SparkFunction(function: MonotoneFunction, from: DataType, to: DataType) extends Step {
    override def mayGiveNull: Boolean = !function.isTotal

    override def apply(bounds: Bounds): Bounds = {
      val evaluate = function.evaluator(from)
      val images = Array.tabulate(bounds.los.length)(image(bounds, _, evaluate))
      if (TypePromotion.encoding(to).contains(Encoding.BinaryValues)) Image.bytes(images, bounds)
      else Image.longs(images, bounds)
    }

    private def image(bounds: Bounds, i: Int, evaluate: Any => Option[Any]): Image = {
      def ofLo = evaluate(function.earliest(CatalystValue.ordered(bounds.los, i, from)))
      def ofHi = evaluate(function.latest(CatalystValue.ordered(bounds.his, i, from)))
      val lo = if (bounds.hasLo(i)) key(ofLo) else None
      val hi = if (bounds.hasHi(i)) key(ofHi) else None
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

  /** Bounds that become known one by one. */
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

    /** Bounds of integers; they are as exact as the bounds that they were made of. */
    def longs(images: Array[Image], source: Bounds): Bounds = {
      val to = new Target(images.length)
      for (i <- images.indices) {
        for (key <- images(i).lo) to.setLo(i, key.toLong, source.loExact(i))
        for (key <- images(i).hi) to.setHi(i, key.toLong, source.hiExact(i))
      }
      to.bounds
    }

    /** Bounds of byte strings; they are as exact as the bounds that they were made of. */
    def bytes(images: Array[Image], source: Bounds): Bounds = {
      val flags = Array.tabulate(images.length) { i =>
        val ofLo = if (source.loExact(i)) Bounds.LoExact else 0
        val ofHi = if (source.hiExact(i)) Bounds.HiExact else 0
        (ofLo | ofHi).toByte
      }
      new BytesBounds(images.map(image => toBytes(image.lo)), images.map(image => toBytes(image.hi)), flags)
    }

    private def toBytes(key: Option[Key]): Array[Byte] = key.map(_.toBytes).orNull
  }

  /** As `mapLongs`, where both bounds are known. */
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
