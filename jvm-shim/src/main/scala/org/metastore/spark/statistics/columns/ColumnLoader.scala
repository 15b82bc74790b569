package org.metastore.spark.statistics.columns

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Indexed, Reason, ReasonCode}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.objects.{Block, ObjectRef}

/** The object and ordinal of a column in one block. */
private[statistics] final case class ColumnSource(
    block: Block,
    ordinal: Int,
    served: TypePromotion,
    ref: ObjectRef)

private[statistics] object ColumnSource {

  /** @param holder the object that holds a column of a block */
  def fromBlock(
      block: Block,
      column: (String, DataType),
      holder: (Block, Int) => Option[ObjectRef]): Seq[ColumnSource] = for {
    (entry, ordinal) <- block.columnsOf(column._1)
    served = TypePromotion.fromEntry(entry, column._2)
    if served != TypePromotion.Nothing
    ref <- holder(block, ordinal)
  } yield ColumnSource(block, ordinal, served, ref)
}

/**
 * Loads columns of blocks for one scan: first the footers, then every row group that is needed, side by side.
 */
private[statistics] final class ColumnLoader[T <: CacheWeight](
    budget: Budget,
    reader: BlockReader,
    cached: (ObjectRef, Int) => Option[T],
    read: (Block, ObjectRef, Int) => Map[Int, T],
    holder: (Block, Int) => Option[ObjectRef] = _.summaryOf(_)) {
  private type Column = (String, DataType)

  private val loaded = mutable.HashMap.empty[(ObjectRef, Int), T]
  private val failed = mutable.HashMap.empty[ObjectRef, Reason]

  /** Reads the columns of blocks that are not loaded yet. */
  def load(blocks: Seq[Block], columns: Seq[Column]): Unit = synchronized {
    val needed = for (column <- columns; block <- blocks; source <- sources(block, column)) yield source
    val missing = needed.distinct.filterNot(isKnown)
    val byObject = missing.groupBy(source => (source.block, source.ref)).toSeq
    val located = attempt(byObject)(_._1._2) { case ((_, ref), sources) =>
      reader.rowGroups(ref, Indexed.set(sources)(_.ordinal))
    }
    val groups = for ((((block, ref), _), rowGroups) <- located; group <- rowGroups) yield (block, ref, group)
    val read = attempt(groups)(_._2) { case (block, ref, group) => readGroup(block, ref, group) }
    for (((_, ref, _), columns) <- read; (ordinal, value) <- columns) loaded((ref, ordinal)) = value
  }

  private def readGroup(block: Block, ref: ObjectRef, group: Int): Map[Int, T] = {
    val columns = read(block, ref, group)
    budget.reserve(columns.values.map(_.weight).sum)
    columns
  }

  /** The parts of a column by block, the least preferred first, or the reason why there are none. */
  def parts(blocks: Seq[BlockJoin], column: Column): Either[Reason, Seq[BlockPart[T]]] = synchronized {
    val parts = for {
      joined <- blocks
      source <- sources(joined.block, column)
      if !failed.contains(source.ref)
      value <- loaded.get((source.ref, source.ordinal))
    } yield BlockPart(joined, source.served, value)
    if (parts.nonEmpty) Right(parts)
    else Left(reasonForNone(blocks.map(_.block), column))
  }

  /** Whether everything that the statistics hold of the column could be read. */
  def complete(blocks: Seq[BlockJoin], column: Column): Boolean = synchronized {
    !blocks.exists(joined => sources(joined.block, column).exists(source => failed.contains(source.ref)))
  }

  private def sources(block: Block, column: Column): Seq[ColumnSource] =
    ColumnSource.fromBlock(block, column, holder)

  /** Whether a column is loaded, from the cache if it is there, or cannot be loaded. */
  private def isKnown(source: ColumnSource): Boolean =
    failed.contains(source.ref) || loaded.contains((source.ref, source.ordinal)) || isCached(source)

  private def isCached(source: ColumnSource): Boolean = {
    val column = cached(source.ref, source.ordinal)
    column.foreach(keep(source.ref, source.ordinal, _))
    column.isDefined
  }

  private def keep(ref: ObjectRef, ordinal: Int, column: T): Unit = {
    budget.reserve(column.weight)
    loaded((ref, ordinal)) = column
  }

  /** The results of reads of objects, side by side; the failures are noted. */
  private def attempt[S, R](sources: Seq[S])(objectOf: S => ObjectRef)(read: S => R): Seq[(S, R)] = {
    val results = PlanningPool.runFor(sources, budget)(read)
    for ((source, Left(reason)) <- results) failed(objectOf(source)) = reason
    for ((source, Right(result)) <- results) yield source -> result
  }

  private def reasonForNone(blocks: Seq[Block], column: Column): Reason = {
    val (key, dataType) = column
    val types = for (block <- blocks; (entry, _) <- block.columnsOf(key)) yield entry.dataType
    def unusable =
      if (types.isEmpty) Reason(ReasonCode.UnknownColumn, "column" -> key)
      else Reason(
        ReasonCode.TypeChanged,
        "column" -> key,
        "written" -> types.distinct.mkString(", "),
        "read" -> dataType.catalogString)
    val failures = blocks.flatMap(sources(_, column)).flatMap(source => failed.get(source.ref))
    failures.headOption.getOrElse(unusable)
  }
}
