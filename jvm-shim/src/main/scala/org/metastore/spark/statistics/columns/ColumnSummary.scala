package org.metastore.spark.statistics.columns

import java.math.BigInteger
import java.util.{Arrays, BitSet => JBitSet}

import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

import org.metastore.spark.statistics.objects.{DoubleOrder, Encoding, Fill, Gather, UnsignedOrder, Values}

/**
 * What is known of one column in one data file: physical rows, deleted ones included.
 *
 * @param lo no non-null value is below it; Catalyst's internal value of the type; `None`: unknown
 * @param hi no non-null value is above it, in Spark's order: NaN where doubles hold one
 * @param distinct distinct non-null values; `avgLen`, `maxLen` in bytes: only what the statistics hold
 */
final case class FileSummary(
    rows: Long,
    nulls: Option[Long],
    nans: Option[Long],
    lo: Option[Any],
    hi: Option[Any],
    loExact: Boolean,
    hiExact: Boolean,
    distinct: Option[Long],
    avgLen: Option[Double],
    maxLen: Option[Long])

/**
 * One column in all files of a [[FileList]], aligned with it. `-1` in a count and `false` in `known` mean unknown: then nothing
 * may be concluded. Contradictory statistics of a file (bounds inverted, more nulls than rows) are unknown already.
 *
 * @param bounds bounds of the file's non-null values in Spark's order; where doubles hold a NaN it is the upper bound
 */
final class ColumnSummary(
    val key: String,
    val dataType: DataType,
    val hasStatistics: Array[Boolean],
    val rows: Array[Long],
    val nulls: Array[Long],
    val nans: Array[Long],
    val bounds: Bounds,
    contradictory: java.util.BitSet)
  extends CacheWeight {

  /** Every file's statistics are usable, and no file's values are all null: then bounds alone decide comparisons. */
  lazy val boundsDecide: Boolean = {
    var file = 0
    while (file < hasStatistics.length && hasStatistics(file) && nulls(file) != rows(file)) file += 1
    file == hasStatistics.length
  }

  /** Whether the file's statistics were set aside because they contradict themselves. */
  def isContradictory(file: Int): Boolean = contradictory.get(file)

  def length: Int = hasStatistics.length

  override def weight: Long = length * 25L + bounds.weight

  /** What is known of some of the files: aligned with `files`. */
  def at(files: Array[Int]): ColumnSummary = {
    val set = new java.util.BitSet
    if (!contradictory.isEmpty) files.indices.foreach(i => set.set(i, contradictory.get(files(i))))
    new ColumnSummary(
      key,
      dataType,
      Gather(hasStatistics, files),
      Gather(rows, files),
      Gather(nulls, files),
      Gather(nans, files),
      bounds.at(files),
      set)
  }
}

/** Distinct counts and lengths of one column, aligned with a [[FileList]]; -1 and NaN mean unknown. */
final class ColumnSizes(val distinct: Array[Long], val avgLen: Array[Double], val maxLen: Array[Long])
  extends CacheWeight {
  override def weight: Long = distinct.length * 24L
}

private[statistics] object ColumnSizes {

  /** Puts the parts of a column in the order of the scan's files; later parts replace earlier ones. */
  def assemble(parts: Seq[BlockPart[BlockSizes]], length: Int): ColumnSizes = {
    val sizes =
      new ColumnSizes(Fill.longs(length, -1), Fill.doubles(length, Double.NaN), Fill.longs(length, -1))
    for (part <- parts; i <- 0 until length) {
      val file = part.block.ordinals(i)
      if (file >= 0) {
        if (part.column.distinct(file) >= 0) sizes.distinct(i) = part.column.distinct(file)
        if (!part.column.avgLen(file).isNaN) sizes.avgLen(i) = part.column.avgLen(file)
        if (part.column.maxLen(file) >= 0) sizes.maxLen(i) = part.column.maxLen(file)
      }
    }
    sizes
  }
}

/** Exact sums of the values of one column, unscaled, aligned with a [[FileList]]; null is unknown. */
final class ColumnSums(val sums: Array[BigInteger]) extends CacheWeight {
  override def weight: Long = sums.length * 60L
}

private[statistics] object ColumnSums {

  /** As `ColumnSizes.assemble`. Of a type that only counts serve there is none. */
  def assemble(parts: Seq[BlockPart[BlockSums]], length: Int): ColumnSums = {
    val sums = new Array[BigInteger](length)
    for (part <- parts if part.served == TypePromotion.Full; i <- 0 until length) {
      val file = part.block.ordinals(i)
      if (file >= 0 && part.column.sums(file) != null) sums(i) = new BigInteger(part.column.sums(file))
    }
    new ColumnSums(sums)
  }
}

/**
 * Bounds of non-null values, one pair a file, in one of two orders that agree with Spark's ordering of the type:
 * `LongBounds` by signed 64-bit integers, `BytesBounds` by unsigned bytes.
 */
sealed trait Bounds extends CacheWeight {
  def hasLo(file: Int): Boolean
  def hasHi(file: Int): Boolean

  /** Whether the bound is known to be a value of the file. */
  def loExact(file: Int): Boolean
  def hiExact(file: Int): Boolean

  /** Lower and upper bounds by file; what stands for unknown ones says nothing. */
  def los: Values
  def his: Values

  /** Those of some of the files, in their order. */
  def at(files: Array[Int]): Bounds
}

/** No bounds are kept for the type: only counts are known. */
case object NoBounds extends Bounds {
  override def hasLo(file: Int): Boolean = false
  override def hasHi(file: Int): Boolean = false
  override def loExact(file: Int): Boolean = false
  override def hiExact(file: Int): Boolean = false
  override val los: Values = Values.Longs(Array.emptyLongArray)
  override val his: Values = los
  override def at(files: Array[Int]): Bounds = this
  override def weight: Long = 0
}

/**
 * Bounds as integers: integral types, dates, timestamps and decimals up to 18 digits as they are, doubles as
 * `DoubleOrder.key`. An unknown lower bound is `Long.MinValue`, an unknown upper bound `Long.MaxValue`, not exact.
 *
 * @param numbers of doubles, upper bounds of the values that are no NaN; null where it is `hi`
 */
final class LongBounds(
    val lo: Array[Long],
    val hi: Array[Long],
    val flags: Array[Byte],
    numbers: Array[Long] = null)
  extends Bounds {

  /** By file: no value up to `limit` is above it. NaN does not count where the limit is below NaN. */
  def hiUpTo(limit: Long): Array[Long] = if (numbers == null || limit >= DoubleOrder.NaN) hi else numbers

  override def hasLo(file: Int): Boolean = (flags(file) & Bounds.HasLo) != 0
  override def hasHi(file: Int): Boolean = (flags(file) & Bounds.HasHi) != 0
  override def loExact(file: Int): Boolean = (flags(file) & Bounds.LoExact) != 0
  override def hiExact(file: Int): Boolean = (flags(file) & Bounds.HiExact) != 0
  override val los: Values = Values.Longs(lo)
  override val his: Values = Values.Longs(hi)

  override def at(files: Array[Int]): Bounds = new LongBounds(
    Gather(lo, files),
    Gather(hi, files),
    Gather(flags, files),
    if (numbers == null) null else Gather(numbers, files))

  override def weight: Long = lo.length * (if (numbers == null) 17L else 25L)
}

/**
 * Bounds as bytes: strings and binary as they are, decimals of more than 18 digits as 16 bytes big-endian with the sign bit
 * flipped. An unknown bound is null.
 */
final class BytesBounds private (
    val lo: Array[Array[Byte]],
    val hi: Array[Array[Byte]],
    val flags: Array[Byte],
    private var madeHeads: Option[BoundHeads])
  extends Bounds {

  def this(lo: Array[Array[Byte]], hi: Array[Array[Byte]], flags: Array[Byte]) = this(lo, hi, flags, None)

  override def hasLo(file: Int): Boolean = lo(file) != null
  override def hasHi(file: Int): Boolean = hi(file) != null
  override def loExact(file: Int): Boolean = hasLo(file) && (flags(file) & Bounds.LoExact) != 0
  override def hiExact(file: Int): Boolean = hasHi(file) && (flags(file) & Bounds.HiExact) != 0
  override val los: Values = Values.Bytes(lo)
  override val his: Values = Values.Bytes(hi)

  /** Integers that most comparisons need alone. */
  def heads: BoundHeads = {
    // threads that make them at once make equal ones
    if (madeHeads.isEmpty) madeHeads = Some(BoundHeads.of(lo, hi))
    madeHeads.get
  }

  override def at(files: Array[Int]): Bounds = new BytesBounds(
    files.map(lo(_)),
    files.map(hi(_)),
    Gather(flags, files),
    madeHeads.map(_.at(files)))

  /** By the lengths of some of them. */
  override def weight: Long = {
    val some = Array.range(0, lo.length, math.max(1, lo.length / BytesBounds.Measured))
    def mean(values: Array[Array[Byte]]): Long =
      if (some.isEmpty) 0
      else some.iterator.map(i => if (values(i) == null) 0L else 24L + values(i).length).sum / some.length
    lo.length * (33L + mean(lo) + mean(hi))
  }
}

private[statistics] object BytesBounds {
  private val Measured = 64
}

/** An integer for every bound that is a byte string: where those of a value and of a bound differ, the two differ alike. */
final class BoundHeads private (shared: Array[Byte], val lo: Array[Long], val hi: Array[Long]) {

  def of(value: Array[Byte]): Long = {
    val order =
      Arrays.compareUnsigned(value, 0, math.min(value.length, shared.length), shared, 0, shared.length)
    if (order < 0) Long.MinValue
    else if (order > 0) Long.MaxValue else UnsignedOrder.head(value, shared.length)
  }

  private[statistics] def at(files: Array[Int]): BoundHeads =
    new BoundHeads(shared, Gather(lo, files), Gather(hi, files))
}

private[statistics] object BoundHeads {
  def of(lo: Array[Array[Byte]], hi: Array[Array[Byte]]): BoundHeads = {
    val shared = sharedBy(lo.iterator ++ hi.iterator)
    new BoundHeads(shared, heads(lo, shared.length, Long.MinValue), heads(hi, shared.length, Long.MaxValue))
  }

  private def sharedBy(bounds: Iterator[Array[Byte]]): Array[Byte] = {
    val known = bounds.filter(_ != null)
    if (!known.hasNext) Array.emptyByteArray
    else {
      val first = known.next()
      var length = first.length
      known.foreach { bound =>
        val differs = Arrays.mismatch(first, 0, length, bound, 0, math.min(length, bound.length))
        if (differs >= 0) length = differs
      }
      first.take(length)
    }
  }

  private def heads(values: Array[Array[Byte]], from: Int, unknown: Long): Array[Long] = {
    val heads = new Array[Long](values.length)
    var i = 0
    while (i < heads.length) {
      heads(i) = if (values(i) == null) unknown else UnsignedOrder.head(values(i), from)
      i += 1
    }
    heads
  }
}

object Bounds {
  val HasLo: Byte = 1
  val HasHi: Byte = 2
  val LoExact: Byte = 4
  val HiExact: Byte = 8
}

/** Puts the parts of a column from all blocks in the order of the scan's files. */
private[statistics] final class SummaryAssembler(key: String, dataType: DataType, length: Int) {
  private val known = new Array[Boolean](length)
  private val rows = Fill.longs(length, -1)
  private val nulls = Fill.longs(length, -1)
  private val nans = Fill.longs(length, -1)
  private val flags = new Array[Byte](length)
  private val contradictory = new JBitSet()
  private val encoding = TypePromotion.encoding(dataType)
  private val isDouble = dataType == DoubleType || dataType == FloatType
  private val isBytes = encoding.contains(Encoding.BinaryValues)
  private val isNumber = encoding.isDefined && !isBytes
  private val lo = if (isNumber) Fill.longs(length, Long.MinValue) else Array.empty[Long]
  private val hi = if (isNumber) Fill.longs(length, Long.MaxValue) else Array.empty[Long]
  private val numbers = if (isDouble) Fill.longs(length, Long.MaxValue) else null
  private val loBytes = new Array[Array[Byte]](if (isBytes) length else 0)
  private val hiBytes = new Array[Array[Byte]](if (isBytes) length else 0)

  def assemble(parts: Seq[BlockPart[BlockColumn]]): ColumnSummary = {
    parts.foreach(add)
    val bounds =
      if (isNumber) new LongBounds(lo, hi, flags, numbers)
      else if (isBytes) new BytesBounds(loBytes, hiBytes, flags) else NoBounds
    new ColumnSummary(key, dataType, known, rows, nulls, nans, bounds, contradictory)
  }

  private def add(part: BlockPart[BlockColumn]): Unit = {
    val ordinals = part.block.ordinals
    val full = part.served == TypePromotion.Full
    var i = 0
    while (i < length) {
      val file = ordinals(i)
      if (file >= 0 && part.column.present(file)) put(i, file, part, full)
      i += 1
    }
  }

  private def put(i: Int, file: Int, part: BlockPart[BlockColumn], full: Boolean): Unit = {
    val column = part.column
    val sound = soundCounts(column, file, part.block.rows(file)) && (!full || soundBounds(column, file))
    known(i) = sound
    if (sound) contradictory.clear(i) else contradictory.set(i)
    rows(i) = column.rows(file)
    nulls(i) = column.nulls(file)
    nans(i) = column.nans(file)
    if (full && sound) putBounds(i, file, column) else clearBounds(i)
  }

  private def soundCounts(column: BlockColumn, file: Int, rowsOfFile: Long): Boolean = {
    val counted = column.rows(file)
    val (nullCount, nanCount) = (column.nulls(file), column.nans(file))
    counted >= 0 && (rowsOfFile < 0 || counted == rowsOfFile) && nullCount >= -1 && nullCount <= counted &&
    nanCount >= -1 && nanCount <= counted - math.max(nullCount, 0)
  }

  /** Bounds must be in order, must not be NaN, and must not exist where no value does. */
  private def soundBounds(column: BlockColumn, file: Int): Boolean = {
    val values = column.rows(file) - math.max(column.nulls(file), 0) - math.max(column.nans(file), 0)
    if (isBytes) {
      val (low, high) = (column.loBytes(file), column.hiBytes(file))
      if (low != null && high != null) values > 0 && UnsignedOrder.compare(low, high) <= 0
      else (low == null && high == null) || values > 0
    } else {
      val has = column.flags(file) & (Bounds.HasLo | Bounds.HasHi)
      has == 0 || (values > 0 && column.lo(file) <= column.hi(file) && !(isDouble && holdsNaN(
        column,
        file,
        has)))
    }
  }

  private def holdsNaN(column: BlockColumn, file: Int, has: Int): Boolean =
    ((has & Bounds.HasLo) != 0 && column.lo(file) >= DoubleOrder.NaN) ||
      ((has & Bounds.HasHi) != 0 && column.hi(file) >= DoubleOrder.NaN)

  private def putBounds(i: Int, file: Int, column: BlockColumn): Unit = {
    flags(i) = column.flags(file)
    if (isBytes) {
      loBytes(i) = column.loBytes(file)
      hiBytes(i) = column.hiBytes(file)
    } else {
      lo(i) = column.lo(file)
      hi(i) = column.hi(file)
      if (isDouble) {
        numbers(i) = hi(i)
        widenToNaN(i)
      }
    }
  }

  /** NaN is Spark's largest double, and stored bounds leave it out: the upper bound holds only where there is none. */
  private def widenToNaN(i: Int): Unit = {
    if (nans(i) < 0) {
      hi(i) = Long.MaxValue
      flags(i) = (flags(i) & ~(Bounds.HasHi | Bounds.HiExact)).toByte
    } else if (nans(i) > 0) {
      hi(i) = DoubleOrder.NaN
      flags(i) = (flags(i) | Bounds.HasHi | Bounds.HiExact).toByte
    }
    if (nans(i) > 0 && nulls(i) >= 0 && nans(i) + nulls(i) == rows(i)) {
      lo(i) = DoubleOrder.NaN
      flags(i) = (flags(i) | Bounds.HasLo | Bounds.LoExact).toByte
    }
  }

  private def clearBounds(i: Int): Unit = {
    flags(i) = 0
    if (isBytes) {
      loBytes(i) = null
      hiBytes(i) = null
    } else if (isNumber) {
      lo(i) = Long.MinValue
      hi(i) = Long.MaxValue
      if (isDouble) numbers(i) = Long.MaxValue
    }
  }
}
