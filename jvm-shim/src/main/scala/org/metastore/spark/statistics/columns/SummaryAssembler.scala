package org.metastore.spark.statistics.columns

import java.math.BigInteger
import java.util.BitSet

import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

import org.metastore.spark.statistics.objects.{DoubleOrder, Encoding, Fill, UnsignedOrder}

/** A column of one block, and the uses that its type allows. */
private[statistics] final case class BlockPart[T](block: BlockJoin, served: TypePromotion, column: T)

/** Puts the parts of a column from all blocks in the order of the scan's files. */
private[statistics] final class SummaryAssembler(key: String, dataType: DataType, length: Int) {
  private val isKnown = new Array[Boolean](length)
  private val rows = Fill.longs(length, -1)
  private val nulls = Fill.longs(length, -1)
  private val nans = Fill.longs(length, -1)
  private val flags = new Array[Byte](length)
  private val contradictory = new BitSet
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
    new ColumnSummary(key, dataType, isKnown, rows, nulls, nans, bounds, contradictory)
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
    isKnown(i) = sound
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

  /**
   * NaN is Spark's largest double, and stored bounds leave it out: the upper bound holds only without NaN.
   */
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

private[statistics] object SizesAssembler {

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

private[statistics] object SumsAssembler {

  /** Assembles sums as `SizesAssembler` does sizes. A type that is served by counts alone has no sums. */
  def assemble(parts: Seq[BlockPart[BlockSums]], length: Int): ColumnSums = {
    val sums = new Array[BigInteger](length)
    for {
      part <- parts
      if part.served == TypePromotion.Full
      i <- 0 until length
    } {
      val file = part.block.ordinals(i)
      if (file >= 0 && part.column.sums(file) != null) sums(i) = new BigInteger(part.column.sums(file))
    }
    new ColumnSums(sums)
  }
}
