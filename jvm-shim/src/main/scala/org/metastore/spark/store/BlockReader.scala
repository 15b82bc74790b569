package org.metastore.spark.store

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.parquet.column.statistics.IntStatistics

/** Decodes what planning needs of a block: its files, and single columns of its summaries. */
private[store] final class BlockReader(objects: ObjectReader) {
  import BlockReader._

  /** The block's data files, from the cache or by reading the `files` object. */
  def files(block: Block): BlockFiles =
    StatisticsCache.getOrLoad[BlockFiles](s"files:${block.files.name}:${block.files.footerSha256}", _.weight)(readFiles(block.files))

  /** A column that was read before. */
  def cached(block: Block, column: Int): Option[BlockColumn] =
    summaryOf(block, column).flatMap(ref => StatisticsCache.get[BlockColumn](columnKey(ref, column)))

  def cachedSizes(block: Block, column: Int): Option[BlockSizes] =
    summaryOf(block, column).flatMap(ref => StatisticsCache.get[BlockSizes](sizesKey(ref, column)))

  def summaryOf(block: Block, column: Int): Option[ObjectRef] = block.summary.find(_.columns.contains(column)).map(_.ref)

  /** Row groups of a summary that may hold one of the columns, by the footer's statistics of `column`. */
  def rowGroups(ref: ObjectRef, columns: Set[Int]): Seq[Int] = {
    val footer = objects.footer(ref)
    (0 until footer.rowGroups.size).filter { group =>
      footer.chunk(group, leaf(footer, "column")).getStatistics match {
        case range: IntStatistics if range.hasNonNullValue => columns.exists(c => range.getMin <= c && c <= range.getMax)
        case _ => true
      }
    }
  }

  /** Reads one row group of a summary and keeps every column in it; returns nothing: ask `cached`, or use the result. */
  def readColumns(block: Block, ref: ObjectRef, group: Int, files: Int): Map[Int, BlockColumn] = {
    val rows = new SummaryGroup(objects, ref, group, BoundFields)
    val loader = new BlockColumnLoader(block, rows, files)
    loader.columns.map { column =>
      val loaded = loader.load(column)
      StatisticsCache.put(columnKey(ref, column), loaded, loaded.weight)
      column -> loaded
    }.toMap
  }

  /** As `readColumns`, for distinct counts and lengths. */
  def readSizes(ref: ObjectRef, group: Int, files: Int): Map[Int, BlockSizes] = {
    val rows = new SummaryGroup(objects, ref, group, SizeFields)
    val distinct = rows.longs("distinct", -1)
    val avgLen = rows.doubles("avg_len")
    val maxLen = rows.longs("max_len", -1)
    rows.spans(files).map { case (column, span) =>
      val sizes = new BlockSizes(
        span.scatter(distinct, -1), span.scatter(avgLen, Double.NaN), span.scatter(maxLen, -1))
      StatisticsCache.put(sizesKey(ref, column), sizes, sizes.weight)
      column -> sizes
    }
  }

  private def readFiles(ref: ObjectRef): BlockFiles = {
    val footer = objects.footer(ref)
    val groups = (0 until footer.rowGroups.size).map { group =>
      val rows = footer.rowGroups.get(group).getRowCount.toInt
      val leaves = FileFields.map(leaf(footer, _))
      val pages = objects.chunks(ref, footer, group, leaves)
      def longs(field: String): Array[Long] = FlatDecoder.longs(pages(leaf(footer, field)), rows, -1)
      (longs("file"), FlatDecoder.bytes(pages(leaf(footer, "path")), rows), longs("size"), longs("modified"), longs("rows"))
    }
    val length = groups.map(_._1.length).sum
    if (length != ref.rows) throw new DamagedObjectException(ref.name, "it has another number of rows than written")
    val paths = new Array[String](length)
    val sizes, modified, rows = Array.fill(length)(-1L)
    groups.foreach { case (ordinals, path, size, time, counts) =>
      ordinals.indices.foreach { i =>
        val file = ordinals(i).toInt
        if (file < 0 || file >= length || path(i) == null) throw new DamagedObjectException(ref.name, "it has no file of an ordinal")
        paths(file) = new String(path(i), UTF_8)
        sizes(file) = size(i)
        modified(file) = time(i)
        rows(file) = counts(i)
      }
    }
    new BlockFiles(paths, sizes, modified, rows)
  }
}

private object BlockReader {
  private val FileFields = Seq("file", "path", "size", "modified", "rows")
  private val BoundFields = Seq(
    "column", "file", "rows", "nulls", "nans", "lo_long", "hi_long", "lo_double", "hi_double", "lo_binary", "hi_binary",
    "lo_exact", "hi_exact")
  private val SizeFields = Seq("column", "file", "distinct", "avg_len", "max_len")

  private def columnKey(ref: ObjectRef, column: Int): String = s"column:${ref.name}:${ref.footerSha256}:$column"

  private def sizesKey(ref: ObjectRef, column: Int): String = s"sizes:${ref.name}:${ref.footerSha256}:$column"

  private def leaf(footer: VerifiedFooter, name: String): Int =
    footer.leavesOf(Set(name)).headOption.getOrElse(throw new IllegalArgumentException(s"it has no column $name"))
}
