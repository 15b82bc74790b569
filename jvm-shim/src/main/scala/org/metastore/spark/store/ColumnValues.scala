package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

/** The values of some files. */
private[store] final class ListValues(dataType: DataType, files: collection.Map[Int, FileValues]) extends ColumnValues {

  override def lack(points: Points): Int => Boolean = {
    lazy val hashes = new ValueHash(dataType).of(points)
    file => files.get(file).exists(_.lack(points, hashes))
  }

  override def within(points: Points): Int => Boolean = file => files.get(file).exists(_.within(points))

  override def evidence(file: Int): Option[ValueEvidence] = files.get(file).map(_.known)
}

/** The values of a column in one data file: all of them listed, or a bloom filter. */
private[store] sealed trait FileValues {

  /** @param hashes of the points */
  def lack(points: Points, hashes: => Array[Long]): Boolean

  def within(points: Points): Boolean

  def known: ValueEvidence

  /** Bytes in memory. */
  def weight: Long
}

private[store] object FileValues {
  import java.util.Arrays

  import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter

  /** Integers, or doubles as their keys. */
  final class LongList(sorted: Array[Long]) extends FileValues {
    override def lack(points: Points, hashes: => Array[Long]): Boolean = points match {
      case Points.Longs(values) => !values.exists(Arrays.binarySearch(sorted, _) >= 0)
      case _ => false
    }

    override def within(points: Points): Boolean = points match {
      case asked: Points.Longs => sorted.length <= asked.count && sorted.forall(asked.has)
      case _ => false
    }

    override def known: ValueEvidence = ValueEvidence.InList(sorted.length)
    override def weight: Long = 24 + 8L * sorted.length
  }

  /** Few enough byte strings that all of them may be asked for at once. */
  final class BytesList(sorted: Array[Array[Byte]]) extends FileValues {
    override def lack(points: Points, hashes: => Array[Long]): Boolean = points match {
      case Points.Bytes(values) => !values.exists(Arrays.binarySearch(sorted, _, UnsignedOrder.comparator) >= 0)
      case _ => false
    }

    override def within(points: Points): Boolean = points match {
      case asked: Points.Bytes => sorted.length <= asked.count && sorted.forall(asked.has)
      case _ => false
    }

    override def known: ValueEvidence = ValueEvidence.InList(sorted.length)
    override def weight: Long = 24 + sorted.iterator.map(24L + _.length).sum
  }

  /** Byte strings by their hashes: what has another hash is not among them. */
  final class HashList(sorted: Array[Long]) extends FileValues {
    override def lack(points: Points, hashes: => Array[Long]): Boolean = !hashes.exists(Arrays.binarySearch(sorted, _) >= 0)
    override def within(points: Points): Boolean = false
    override def known: ValueEvidence = ValueEvidence.InList(sorted.length)
    override def weight: Long = 24 + 8L * sorted.length
  }

  /** The bits of a bloom filter. */
  final class Bloom(bits: Array[Byte]) extends FileValues {
    override def lack(points: Points, hashes: => Array[Long]): Boolean = {
      val filter = new BlockSplitBloomFilter(bits)
      !hashes.exists(filter.findHash(_))
    }

    override def within(points: Points): Boolean = false
    override def known: ValueEvidence = ValueEvidence.InFilter
    override def weight: Long = 24L + bits.length
  }
}
