package org.metastore.spark.pruning

import scala.util.control.NonFatal

import org.metastore.spark.store.{Bounds, BytesBounds, DecimalBytes, LongBounds}

/** Takes the bounds of a value to the bounds of a monotone function of it. */
private[pruning] sealed trait Step extends (Bounds => Bounds)

private[pruning] object Step {

  /**
   * A function that never decreases and is defined everywhere, or nearly. Where it fails on a bound, that bound is unknown.
   *
   * @param low  of the lower bound: not above the function's value there
   * @param high of the upper bound: not below the function's value there
   * @param attained the results are values of the function, so that exact bounds stay exact
   */
  final case class Monotone(low: Long => Long, high: Long => Long, attained: Boolean) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      if (from.hasLo(i)) attempt(low(from.lo(i))).foreach(to.setLo(i, _, attained && from.loExact(i)))
      if (from.hasHi(i)) attempt(high(from.hi(i))).foreach(to.setHi(i, _, attained && from.hiExact(i)))
    }
  }

  object Monotone {
    def exactly(function: Long => Long): Monotone = Monotone(function, function, attained = true)
  }

  /**
   * Integer arithmetic that may overflow, and then gives a smaller value or an error: both bounds must be known and pass, or
   * nothing is.
   *
   * @param function throws where it overflows
   * @param falling  larger arguments give smaller results
   */
  final case class Arithmetic(function: Long => Long, falling: Boolean) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      if (from.hasLo(i) && from.hasHi(i)) {
        for (ofLo <- attempt(function(from.lo(i))); ofHi <- attempt(function(from.hi(i)))) {
          to.setLo(i, if (falling) ofHi else ofLo, if (falling) from.hiExact(i) else from.loExact(i))
          to.setHi(i, if (falling) ofLo else ofHi, if (falling) from.loExact(i) else from.hiExact(i))
        }
      }
    }
  }

  /** Unscaled decimals up to 18 digits times 10^digits, as decimals of more than 18. */
  final case class ToLongDecimal(digits: Int) extends Step {
    private val factor = java.math.BigInteger.TEN.pow(digits)

    override def apply(bounds: Bounds): Bounds = bounds match {
      case b: LongBounds =>
        def convert(value: Long): Array[Byte] = DecimalBytes.of(java.math.BigInteger.valueOf(value).multiply(factor))
        new BytesBounds(
          b.lo.indices.map(i => if (b.hasLo(i)) convert(b.lo(i)) else null).toArray,
          b.hi.indices.map(i => if (b.hasHi(i)) convert(b.hi(i)) else null).toArray, b.flags)
      case b: BytesBounds =>
        def convert(value: Array[Byte]): Array[Byte] =
          if (value == null) null else DecimalBytes.of(DecimalBytes.unscaled(value).multiply(factor))
        new BytesBounds(b.lo.map(convert), b.hi.map(convert), b.flags)
      case other => other
    }
  }

  private def attempt(value: => Long): Option[Long] =
    try Some(value)
    catch { case NonFatal(_) => None } // the bound is then unknown, which is sound

  /** Bounds that become known one by one. */
  private final class Target(length: Int) {
    val bounds = new LongBounds(Array.fill(length)(Long.MinValue), Array.fill(length)(Long.MaxValue), new Array[Byte](length))

    def setLo(i: Int, value: Long, exact: Boolean): Unit = {
      bounds.lo(i) = value
      bounds.flags(i) = (bounds.flags(i) | Bounds.HasLo | (if (exact) Bounds.LoExact else 0)).toByte
    }

    def setHi(i: Int, value: Long, exact: Boolean): Unit = {
      bounds.hi(i) = value
      bounds.flags(i) = (bounds.flags(i) | Bounds.HasHi | (if (exact) Bounds.HiExact else 0)).toByte
    }
  }

  private def mapLongs(bounds: Bounds)(put: (LongBounds, Target, Int) => Unit): Bounds = bounds match {
    case from: LongBounds =>
      val length = from.lo.length
      val to = new Target(length)
      var i = 0
      while (i < length) {
        put(from, to, i)
        i += 1
      }
      to.bounds
    case other => throw new IllegalArgumentException(s"no step over ${other.getClass.getName}")
  }
}
