package org.metastore.spark.statistics.columns

import java.nio.charset.StandardCharsets.UTF_8

import org.metastore.spark.reason.{DamagedObjectException, Indexed}
import org.metastore.spark.statistics.cache.StatisticsCache
import org.metastore.spark.statistics.objects.{Block, ColumnRows, Fill, ObjectReader, ObjectRef, RowGroup}

/** Reads the parts of a block that planning needs: its files, and single columns of its summaries. */
private[statistics] final class BlockReader(objects: ObjectReader) {
  import BlockReader._

  /** The block's data files, from the cache or by reading the `files` object. */
  def files(block: Block): BlockFiles =
    StatisticsCache.getOrLoad[BlockFiles](
      s"files:${block.files.name}:${block.files.footerSha256}",
      _.weight)(readFiles(block.files))

  /** The data files of a snapshot, in its order. */
  def tableFiles(ref: ObjectRef): BlockFiles =
    StatisticsCache.getOrLoad[BlockFiles](
      s"table-files:${ref.name}:${ref.footerSha256}",
      _.weight)(readTableFiles(ref))

  /** A column that was read before. */
  def cached(ref: ObjectRef, column: Int): Option[BlockColumn] =
    StatisticsCache.get[BlockColumn](columnKey(ref, column))

  def cachedSizes(ref: ObjectRef, column: Int): Option[BlockSizes] =
    StatisticsCache.get[BlockSizes](sizesKey(ref, column))

  def cachedSums(ref: ObjectRef, column: Int): Option[BlockSums] =
    StatisticsCache.get[BlockSums](sumsKey(ref, column))

  /** Row groups of a summary that may hold one of the columns, by the footer's statistics of `column`. */
  def rowGroups(ref: ObjectRef, columns: Set[Int]): Seq[Int] = objects.footer(ref).groupsOf(columns)

  /** Reads one row group of a block's summary and caches every column in it, by ordinal. */
  def readColumns(block: Block, ref: ObjectRef, group: Int): Map[Int, BlockColumn] =
    read(ref, group, BoundFields)(rows => keepAll(ref, new BlockColumnLoader(block, rows, filesOf(block))))

  /** The number of rows of each file of a block. */
  def rows(block: Block): BlockRows =
    StatisticsCache.getOrLoad[BlockRows](
      s"rows:${block.files.name}:${block.files.footerSha256}",
      _.files.length * 8L) {
      val written = objects.footer(block.files).rowGroups
      if (written.map(_.rows).sum != block.files.rows) throw anotherNumberOfRows(block.files)
      val groups = written.indices.map { group =>
        read(block.files, group, Seq("file", "rows"))(part =>
          (part.longs("file", -1), part.longs("rows", -1)))
      }
      new BlockRows(groups match {
        case Seq((ordinals, counts))
            if ordinals.length == filesOf(block) && ColumnRows.areConsecutive(ordinals, 0, ordinals.length) =>
          counts
        case _ => objects.asDamage(block.files)(byOrdinal(groups, filesOf(block)))
      })
    }

  private def byOrdinal(groups: Seq[(Array[Long], Array[Long])], files: Int): Array[Long] = {
    val out = Fill.longs(files, -1)
    for ((ordinals, counts) <- groups; i <- ordinals.indices) out(Math.toIntExact(ordinals(i))) = counts(i)
    out
  }

  /** Reads distinct counts and lengths as `readColumns` reads bounds. */
  def readSizes(block: Block, ref: ObjectRef, group: Int): Map[Int, BlockSizes] =
    read(ref, group, SizeFields) { rows =>
      val distinct = rows.longs("distinct", -1)
      val avgLen = rows.doubles("avg_len")
      val maxLen = rows.longs("max_len", -1)
      keepSpans(block, rows, sizesKey(ref, _)) { span =>
        new BlockSizes(span.scatter(distinct, -1), span.scatter(avgLen, Double.NaN), span.scatter(maxLen, -1))
      }
    }

  /** Reads exact sums as `readColumns` reads bounds. */
  def readSums(block: Block, ref: ObjectRef, group: Int): Map[Int, BlockSums] =
    read(ref, group, SumFields) { rows =>
      val sums = rows.bytes("sum_exact")
      keepSpans(block, rows, sumsKey(ref, _))(span => new BlockSums(span.scatter(sums)))
    }

  private def keepSpans[T <: CacheWeight](
      block: Block,
      rows: RowGroup,
      key: Int => String)(toColumn: ColumnRows => T): Map[Int, T] =
    for ((column, span) <- rows.spans(filesOf(block))) yield {
      val values = toColumn(span)
      StatisticsCache.put(key(column), values, values.weight)
      column -> values
    }

  /** The columns of a table-summary whose distinct values were counted, by ordinal. */
  def tableDistinct(ref: ObjectRef): Map[Int, TableDistinct] =
    StatisticsCache.getOrLoad[Map[Int, TableDistinct]](
      s"distinct:${ref.name}:${ref.footerSha256}",
      _.size * 100L) {
      val groups = objects.footer(ref).rowGroups.indices
      groups.flatMap(read(ref, _, Seq("column", "distinct", "files")) { rows =>
        val columns = rows.longs("column", -1)
        val distinct = rows.longs("distinct", -1)
        val files = rows.longs("files", 1)
        val counted = columns.indices.filter(distinct(_) >= 0)
        counted.map(i => columns(i).toInt -> TableDistinct(distinct(i).toDouble, files(i).toInt))
      }).toMap
    }

  private def read[T](ref: ObjectRef, group: Int, fields: Seq[String])(decode: RowGroup => T): T =
    RowGroup.read(objects, ref, group, fields)(decode)

  private def anotherNumberOfRows(ref: ObjectRef) =
    new DamagedObjectException(ref.name, "it has another number of rows than written")

  private def filesOf(block: Block): Int = Math.toIntExact(block.files.rows)

  private def readTableFiles(ref: ObjectRef): BlockFiles = {
    val footer = objects.footer(ref)
    val modified = Seq("modified").filter(footer.has) // the column is optional
    val paths = Array.newBuilder[String]
    val sizes, times = Array.newBuilder[Long]
    for (group <- footer.rowGroups.indices)
      read(ref, group, Seq("path", "size") ++ modified) { rows =>
        val pathsOfGroup = rows.bytes("path")
        if (pathsOfGroup.contains(null)) throw new IllegalArgumentException("it has a file without a path")
        paths ++= pathsOfGroup.map(new String(_, UTF_8))
        sizes ++= rows.longs("size", -1)
        times ++= modified.headOption.fold(Fill.longs(pathsOfGroup.length, -1))(rows.longs(_, -1))
      }
    val all = paths.result()
    if (all.length != ref.rows) throw anotherNumberOfRows(ref)
    new BlockFiles(all, sizes.result(), times.result(), new BlockRows(Fill.longs(all.length, -1)))
  }

  private def readFiles(ref: ObjectRef): BlockFiles = {
    val groups = objects.footer(ref).rowGroups.indices.map { group =>
      read(ref, group, FileFields) { part =>
        def longs(field: String): Array[Long] = part.longs(field, -1)
        (longs("file"), part.bytes("path"), longs("size"), longs("modified"), longs("rows"))
      }
    }
    val length = groups.map(_._1.length).sum
    if (length != ref.rows) throw anotherNumberOfRows(ref)
    val paths = new Array[String](length)
    val sizes, modified, rows = Fill.longs(length, -1)
    for ((ordinals, path, size, time, counts) <- groups) {
      for (i <- ordinals.indices) {
        val file = ordinals(i).toInt
        if (file < 0 || file >= length || path(i) == null)
          throw new DamagedObjectException(ref.name, "it has no file of an ordinal")
        paths(file) = new String(path(i), UTF_8)
        sizes(file) = size(i)
        modified(file) = time(i)
        rows(file) = counts(i)
      }
    }
    if (paths.contains(null)) throw new DamagedObjectException(ref.name, "it has two files of one ordinal")
    new BlockFiles(paths, sizes, modified, new BlockRows(rows))
  }
}

private[statistics] object BlockReader {
  private val FileFields = Seq("file", "path", "size", "modified", "rows")
  private val BoundFields = Seq(
    "column",
    "file",
    "rows",
    "nulls",
    "nans",
    "lo_long",
    "hi_long",
    "lo_double",
    "hi_double",
    "lo_binary",
    "hi_binary",
    "lo_exact",
    "hi_exact")
  private val SizeFields = Seq("column", "file", "distinct", "avg_len", "max_len")
  private val SumFields = Seq("column", "file", "sum_exact")

  /** Loads all columns of a row group and caches them. */
  def keepAll(ref: ObjectRef, loader: BlockColumnLoader): Map[Int, BlockColumn] =
    Indexed.entries(loader.columns) { column =>
      val loaded = loader.load(column)
      StatisticsCache.put(columnKey(ref, column), loaded, loaded.weight)
      column -> loaded
    }

  def columnKey(ref: ObjectRef, column: Int): String = s"column:${ref.name}:${ref.footerSha256}:$column"

  private def sizesKey(ref: ObjectRef, column: Int): String = s"sizes:${ref.name}:${ref.footerSha256}:$column"

  private def sumsKey(ref: ObjectRef, column: Int): String = s"sums:${ref.name}:${ref.footerSha256}:$column"
}
