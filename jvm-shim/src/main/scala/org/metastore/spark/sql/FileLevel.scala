package org.metastore.spark.sql

import org.metastore.spark.store.{Block, ColumnEntry, DataFileRow, DetailRef, FileKey, HistogramRow, Snapshot, SummaryRow, TableFileRow, ValueCount}

/** One column in one data file, by the deepest of the blocks that know it. */
final case class FileColumnSummary(file: TableFileRow, column: ColumnEntry, row: SummaryRow)

/** The file level of the statistics, restricted to the live files of one analyzed snapshot. */
final class FileLevel(analyzed: TableContext, snapshot: Snapshot) {

  val files: IndexedSeq[TableFileRow] = analyzed.store.tableFiles(snapshot)

  /** The live data file of a path, or of its last part where that is one file's alone. */
  def find(path: String): TableFileRow = files.find(_.path == path).getOrElse {
    files.filter(_.path.endsWith(s"/$path")) match {
      case Seq(only) => only
      case _ => throw MetastoreException.invalidArgument("file", s"$path is no data file of snapshot ${snapshot.id} of ${analyzed.name}")
    }
  }

  /** What is known of some columns in some of the files, ordered by file, then as the keys are. */
  def columns(of: Seq[TableFileRow], keys: Seq[String]): Seq[FileColumnSummary] = {
    val wanted = of.map(file => file.key -> file).toMap
    val position = keys.zipWithIndex.toMap
    val found = blocks.flatMap(block => inBlock(block, wanted, position.keySet))
    val deepest = found.foldLeft(Map.empty[(String, String), FileColumnSummary]) { (kept, known) =>
      kept.updated((known.file.path, known.column.key), known)
    }
    val order = of.map(_.path).zipWithIndex.toMap
    deepest.values.toSeq.sortBy(known => (order(known.file.path), position(known.column.key)))
  }

  /** The most frequent value of each column of a data file, by the column's key. */
  def mostFrequent(of: TableFileRow): Map[String, ValueCount] =
    ofDetails(of, _.frequencies)(detail => analyzed.store.mostFrequent(detail.ref, Some(detail.file)))

  /** The histogram of each column of a data file, by the column's key. */
  def histograms(of: TableFileRow): Map[String, HistogramRow] =
    ofDetails(of, _.histograms)(detail => analyzed.store.histograms(detail.ref, detail.file))

  /** What detail objects tell of the columns of a data file. */
  private def ofDetails[T](of: TableFileRow, kind: DataFileRow => Option[DetailRef])(read: DetailRef => Map[Int, T]): Map[String, T] =
    blocks.foldLeft(Map.empty[String, T]) { (found, block) =>
      val detail = analyzed.store.dataFiles(block).find(file => file.key == of.key).flatMap(kind)
      found ++ detail.fold(Map.empty[Int, T])(read).map { case (column, known) => block.columns(column).key -> known }
    }

  /** The row of `files` of the deepest block that knows a column of a data file, and the column's ordinal there. */
  def details(of: TableFileRow, key: String): Option[(DataFileRow, Int)] =
    blocks.reverseIterator.flatMap { block =>
      val ordinal = block.columns.indexWhere(_.key == key)
      if (ordinal < 0) None
      else analyzed.store.dataFiles(block).find(file => file.key == of.key).map(_ -> ordinal)
    }.take(1).toList.headOption

  /** How many of some columns have statistics in each file, by path. */
  def columnCounts(of: Seq[TableFileRow], keys: Set[String]): Map[String, Int] = {
    val wanted = of.map(file => file.key -> file).toMap
    val perBlock = blocks.flatMap { block =>
      val files = analyzed.store.dataFiles(block).filter(file => wanted.contains(file.key))
      val known = keysOf(block, files.map(_.file).toSet, keys)
      files.map(file => file.path -> known(file.file))
    }
    perBlock.groupBy(_._1).map { case (path, known) => path -> known.map(_._2).reduce(_ ++ _).size }
  }

  /** The columns with a row in a block, by file. Merged blocks may have gaps: only then the rows are read. */
  private def keysOf(block: Block, files: Set[Int], keys: Set[String]): Int => Set[String] = {
    val columns = block.columns.indices.filter(i => keys.contains(block.columns(i).key)).toSet
    if (block.summary.map(_.ref.rows).sum == block.files.rows * block.columns.length) _ => columns.map(block.columns(_).key)
    else if (files.isEmpty || columns.isEmpty) _ => Set.empty
    else analyzed.store.summary(block, Some(columns), Some(files)).groupBy(_.file.get)
      .map { case (file, rows) => file -> rows.map(row => block.columns(row.column).key).toSet }.withDefaultValue(Set.empty)
  }

  /** From the one that counts least to the one that counts most: `full` before `footer`, later before earlier. */
  private def blocks: Seq[Block] = {
    val blocks = analyzed.manifest.toSeq.flatMap(_.blocks).filter(_.computed != "files")
    blocks.filter(_.computed != "full") ++ blocks.filter(_.computed == "full")
  }

  private def inBlock(block: Block, wanted: Map[FileKey, TableFileRow], keys: Set[String]): Seq[FileColumnSummary] = {
    val files = analyzed.store.dataFiles(block).flatMap(file => wanted.get(file.key).map(file.file -> _)).toMap
    val columns = block.columns.indices.filter(i => keys.contains(block.columns(i).key)).toSet
    if (files.isEmpty || columns.isEmpty) Nil
    else analyzed.store.summary(block, Some(columns), Some(files.keySet))
      .map(row => FileColumnSummary(files(row.file.get), block.columns(row.column), row))
  }
}
