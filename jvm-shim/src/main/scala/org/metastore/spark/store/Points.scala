package org.metastore.spark.store

import java.util.Arrays

import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter
import org.apache.parquet.io.api.Binary
import org.apache.spark.sql.types.{DataType, DecimalType, DoubleType, FloatType}

/** Single values that a filter asks for, sorted in the order of bounds: integers, doubles as `DoubleOrder.key`, or bytes. */
sealed trait Points {
  def count: Int
}

object Points {

  /** More than these are not looked up one by one. */
  val Most = 1000

  final case class Longs(sorted: Array[Long]) extends Points {
    override def count: Int = sorted.length

    def has(value: Long): Boolean = Arrays.binarySearch(sorted, value) >= 0
  }

  final case class Bytes(sorted: Array[Array[Byte]]) extends Points {
    override def count: Int = sorted.length

    def has(value: Array[Byte]): Boolean = Arrays.binarySearch(sorted, value, UnsignedOrder.comparator) >= 0
  }
}

/** Hashes as docs/format.md says ("sketches"): XXH64 of a value as it is stored, not as it is ordered. */
private[store] final class ValueHash(dataType: DataType) {
  private val isDouble = dataType == DoubleType || dataType == FloatType
  private val isDecimal = dataType.isInstanceOf[DecimalType]
  private val hasher = new BlockSplitBloomFilter(BlockSplitBloomFilter.LOWER_BOUND_BYTES) // not for several threads

  def of(points: Points): Array[Long] = points match {
    case Points.Longs(values) => values.map(value => hasher.hash(if (isDouble) bitsOf(value) else value))
    case Points.Bytes(values) => values.map(ofBytes)
  }

  /** Of bytes in the order of bounds. */
  def ofBytes(value: Array[Byte]): Long =
    hasher.hash(Binary.fromConstantByteArray(if (isDecimal) DecimalBytes.ordered(value) else value))

  private def bitsOf(key: Long): Long = java.lang.Double.doubleToLongBits(DoubleOrder.value(key))
}
