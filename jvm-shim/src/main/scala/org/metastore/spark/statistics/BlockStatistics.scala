package org.metastore.spark.statistics

import java.util.concurrent.ConcurrentHashMap

import scala.reflect.ClassTag

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Attempt, Reason}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockColumn, BlockPart, BlockReader, BlockSizes, BlockSums, CacheWeight, CatalystValue, ColumnLoader,
  ColumnSizes, ColumnSummary, ColumnSums, ColumnValues, CountedValues, FileGroupStatistics, FileJoin,
  FileList, FileSetStatistics, SizesAssembler, SummaryAssembler, SumsAssembler
}
import org.metastore.spark.statistics.objects.{Fill, Manifest, Values}
import org.metastore.spark.statistics.values.{
  HistogramReader, IndexFiles, IndexValues, ListValues, ValueCountLoader, ValueCountReader, ValueFrequencies,
  ValueIndex, ValueIndexReader
}
import org.metastore.spark.statistics.zones.{PageLoader, ZoneGroups, ZoneReader}

/** The readers of one version of a table's statistics for planning a query. */
private[statistics] final class StatisticsReaders(
    val blocks: BlockReader,
    val zones: ZoneReader,
    val values: ValueCountReader,
    val valueIndex: ValueIndexReader,
    val histograms: HistogramReader,
    val manifest: Manifest,
    val budget: Budget)

/** Columns of the blocks that a query uses. Each part is read once for all of the query's files. */
private[statistics] final class QueryColumns(readers: StatisticsReaders) {
  import readers.{blocks, budget}

  val bounds = new ColumnLoader[BlockColumn](budget, blocks, blocks.cached, blocks.readColumns)
  val sizes = new ColumnLoader[BlockSizes](budget, blocks, blocks.cachedSizes, blocks.readSizes)
  val sums = new ColumnLoader[BlockSums](budget, blocks, blocks.cachedSums, blocks.readSums)
  val zones =
    new ColumnLoader[BlockColumn](budget, blocks, blocks.cached, readers.zones.readZones, _.zonesOf(_))
}

/** Statistics joined with the files of a scan, or with some of them. */
private[statistics] final class BlockStatistics(
    readers: StatisticsReaders,
    override val files: FileList,
    joined: FileJoin,
    columns: QueryColumns,
    few: Boolean = false)
  extends FileSetStatistics {
  import readers.{budget, values => valueReader}

  private type Column = (String, DataType)

  private val valueIndex =
    new ValueIndex(readers.blocks, readers.valueIndex, readers.manifest, joined, files, budget)
  private lazy val paged = new PageLoader(readers.zones, joined.blocks, columns.bounds, budget)
  private val summaries = new ConcurrentHashMap[Column, Either[Reason, ColumnSummary]]()

  override def fingerprint: String = joined.fingerprint
  override def rows: Array[Long] = joined.rows
  override def isKnown(file: Int): Boolean = joined.isKnown(file)
  override def knownFiles: Int = joined.knownFiles

  override def load(requested: Seq[Column]): Unit = {
    val missing = requested.distinct.filterNot(column => summaries.containsKey(column) || isAligned(column))
    if (few) paged.load(missing)
    else columns.bounds.load(joined.blocks.map(_.block), missing)
    val loaded = Seq.newBuilder[(Column, Seq[BlockPart[BlockColumn]])]
    for (column <- missing) boundsOf(column) match {
      case Right(parts) => loaded += column -> parts
      case Left(reason) => summaries.put(column, Left(joined.failure.getOrElse(reason)))
    }
    for ((column, summary) <- assemble(loaded.result())) {
      summaries.put(column, summary)
      if (!few && columns.bounds.complete(joined.blocks, column))
        summary.foreach(joined.keepAligned(column, _))
    }
  }

  private def boundsOf(column: Column): Either[Reason, Seq[BlockPart[BlockColumn]]] =
    if (few) paged.parts(column) else columns.bounds.parts(joined.blocks, column)

  private def assemble(
      loaded: Seq[(Column, Seq[BlockPart[BlockColumn]])]): Seq[(Column, Either[Reason, ColumnSummary])] = {
    val tasks = for (((key, dataType), parts) <- loaded)
      yield () => new SummaryAssembler(key, dataType, files.length).assemble(parts)
    // Other threads take longer to begin than a few thousand values to be copied.
    val inPool = tasks.size > 1 && tasks.size.toLong * files.length > BlockStatistics.Few
    val summaries = if (inPool) PlanningPool.run(tasks, budget) else PlanningPool.here(tasks, budget)
    loaded.map(_._1).zip(summaries)
  }

  private def isAligned(column: Column): Boolean = {
    val aligned = joined.findAligned[ColumnSummary](column)
    for (summary <- aligned) summaries.put(column, Right(summary))
    aligned.isDefined
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] = {
    val column = (key, dataType)
    if (!summaries.containsKey(column)) load(Seq(column))
    summaries.get(column)
  }

  override def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] =
    aligned((key, dataType), columns.sizes)(SizesAssembler.assemble(_, files.length))

  override def sums(key: String, dataType: DataType): Either[Reason, ColumnSums] =
    aligned((key, dataType), columns.sums)(SumsAssembler.assemble(_, files.length))

  private def aligned[B <: CacheWeight, A <: CacheWeight: ClassTag](
      column: Column,
      loader: ColumnLoader[B])(assemble: Seq[BlockPart[B]] => A): Either[Reason, A] =
    joined.findAligned[A](column) match {
      case Some(column) => Right(column)
      case None =>
        loader.load(joined.blocks.map(_.block), Seq(column))
        loader.parts(joined.blocks, column).map { parts =>
          val assembled = assemble(parts)
          if (!few && loader.complete(joined.blocks, column)) joined.keepAligned(column, assembled)
          assembled
        }
    }

  override def values(
      key: String,
      dataType: DataType,
      selected: Array[Int],
      filters: Boolean,
      most: Long): ColumnValues =
    orUnknown[ColumnValues](ColumnValues.Unknown) {
      def listed(open: Array[Int]): ColumnValues =
        if (open.isEmpty) ColumnValues.Unknown
        else {
          val loader = new ValueCountLoader(valueReader, joined.blocks, budget, most)
          new ListValues(dataType, loader.load(key, dataType, open, filters))
        }
      findInIndex(key, dataType, selected).fold(listed(selected))(new IndexValues(_, selected, listed(_)))
    }

  override def valueCounts(
      key: String,
      dataType: DataType,
      selected: Array[Int]): collection.Map[Int, CountedValues] =
    orUnknown[collection.Map[Int, CountedValues]](Map.empty) {
      val loader =
        new ValueCountLoader(valueReader, joined.blocks, budget, most = Long.MaxValue, counted = true)
      for {
        (file, values) <- loader.load(key, dataType, selected, filters = false)
        counted <- values.counted
      } yield file -> counted
    }

  private def orUnknown[A](unknown: A)(load: => A): A =
    Attempt.recover(load) { failure =>
      PlanningPool.explain(failure, budget)
      unknown
    }

  override def frequencies(key: String, dataType: DataType, value: Any, selected: Array[Int]): Array[Long] = {
    def counted(counts: ColumnSummary => Array[Long]): Array[Long] = column(key, dataType) match {
      case Right(summary) => selected.map(i => if (summary.hasStatistics(i)) counts(summary)(i) else -1L)
      case Left(_) => Fill.longs(selected.length, -1)
    }
    value match {
      case null => counted(_.nulls)
      case number: Double if number.isNaN => counted(_.nans)
      case number: Float if number.isNaN => counted(_.nans)
      case _ => frequencies(key, dataType, CatalystValue.point(value, dataType), selected)
    }
  }

  private def frequencies(
      key: String,
      dataType: DataType,
      point: Values,
      selected: Array[Int]): Array[Long] = {
    val frequencies = Fill.longs(selected.length, -1)
    for {
      indexed <- findInIndex(key, dataType, selected)
      rows <- indexed.rows(point)
      i <- selected.indices
      if indexed.isCovered(selected(i))
    } frequencies(i) = rows(selected(i))
    val open = selected.indices.filter(frequencies(_) < 0).toArray
    val counts = new ValueFrequencies(valueReader, joined.blocks, budget)
    val listed = counts.load(key, dataType, point, open.map(selected(_)))
    for (i <- open.indices) frequencies(open(i)) = listed(i)
    frequencies
  }

  private def findInIndex(key: String, dataType: DataType, selected: Array[Int]): Option[IndexFiles] =
    column(key, dataType).toOption.flatMap(valueIndex.find(key, dataType, selected, _))

  override def groups(requested: Seq[Column]): Seq[FileGroupStatistics] = {
    val zoned = joined.blocks.filter(_.block.zones.nonEmpty)
    columns.zones.load(zoned.map(_.block), requested)
    zoned.map(new ZoneGroups(_, columns.zones))
  }

  override def among(selected: Array[Int]): FileSetStatistics =
    new BlockStatistics(readers, files.at(selected), joined.at(selected), columns, few = true)
}

private object BlockStatistics {
  private val Few = 20000L
}
