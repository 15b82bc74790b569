package org.metastore.spark.statistics.columns

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Indexed, Reason, ReasonCode}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.objects.{Block, ObjectRef}

/** The place of a column in one block. */
private[statistics] final case class ColumnSource(
    block: Block,
    ordinal: Int,
    served: TypePromotion,
    ref: ObjectRef)

private[statistics] object ColumnSource {

  /** @param holder the object that holds a column of a block */
  def find(
      block: Block,
      column: (String, DataType),
      holder: (Block, Int) => Option[ObjectRef]): Seq[ColumnSource] = for {
    (entry, ordinal) <- block.columnsOf(column._1)
    served = TypePromotion.fromEntry(entry, column._2)
    if served != TypePromotion.Nothing
    ref <- holder(block, ordinal)
  } yield ColumnSource(block, ordinal, served, ref)
}

/** Loads columns of blocks for one scan: first the footers, then every row group that is needed, side by side. */
private[statistics] final class ColumnLoader[T <: CacheWeight](
    budget: Budget,
    reader: BlockReader,
    cached: (ObjectRef, Int) => Option[T],
    read: (Block, ObjectRef, Int) => Map[Int, T],
    holder: (Block, Int) => Option[ObjectRef] = _.summaryOf(_)) {
  private type Column = (String, DataType)

  private val loaded = mutable.HashMap.empty[(ObjectRef, Int), T]
  private val failed = mutable.HashMap.empty[ObjectRef, Reason]

  /** Reads columns of blocks, as far as they are not there yet. */
  def load(blocks: Seq[Block], columns: Seq[Column]): Unit = synchronized {
    val needed =
      (for (column <- columns; block <- blocks; source <- sources(block, column)) yield source).distinct
    val missing =
      needed.filterNot(source => failed.contains(source.ref) || isLoaded(source.ref, source.ordinal))
    val wanted = missing.groupBy(source => (source.block.files, source.ref)).values.toSeq
    val groups = attempt(
      wanted.map(_.head.ref),
      wanted.map { all => () =>
        reader.rowGroups(all.head.ref, Indexed.set(all)(_.ordinal)).map(all.head -> _)
      }).flatten
    val reads = for ((source, group) <- groups) yield () => {
      val columns = read(source.block, source.ref, group)
      budget.reserve(columns.values.map(_.weight).sum)
      for ((ordinal, value) <- columns) yield (source.ref, ordinal) -> value
    }
    for (columns <- attempt(groups.map(_._1.ref), reads)) loaded ++= columns
  }

  /** The parts of a column by block, the least preferred first, or why there are none. */
  def parts(blocks: Seq[BlockJoin], column: Column): Either[Reason, Seq[BlockPart[T]]] = synchronized {
    val found = for {
      joined <- blocks
      source <- sources(joined.block, column)
      if !failed.contains(source.ref)
      value <- loaded.get((source.ref, source.ordinal))
    } yield BlockPart(joined, source.served, value)
    if (found.nonEmpty) Right(found)
    else Left(whyNone(blocks.map(_.block), column))
  }

  /** Whether everything that the statistics hold of the column could be read. */
  def complete(blocks: Seq[BlockJoin], column: Column): Boolean = synchronized {
    !blocks.exists(joined => sources(joined.block, column).exists(source => failed.contains(source.ref)))
  }

  private def sources(block: Block, column: Column): Seq[ColumnSource] =
    ColumnSource.find(block, column, holder)

  private def isLoaded(ref: ObjectRef, ordinal: Int): Boolean = loaded.contains((ref, ordinal)) || {
    val found = cached(ref, ordinal)
    for (column <- found) {
      budget.reserve(column.weight)
      loaded((ref, ordinal)) = column
    }
    found.isDefined
  }

  private def attempt[R](refs: Seq[ObjectRef], reads: Seq[() => R]): Seq[R] =
    refs.zip(PlanningPool.run(reads, budget)).flatMap {
      case (_, Right(result)) => Some(result)
      case (ref, Left(reason)) =>
        failed(ref) = reason
        None
    }

  private def whyNone(blocks: Seq[Block], column: Column): Reason = {
    val types = for {
      block <- blocks
      (entry, _) <- block.columnsOf(column._1)
    } yield entry.dataType
    val written = types.distinct
    val failures =
      for {
        block <- blocks
        source <- sources(block, column)
        failure <- failed.get(source.ref)
      } yield failure
    failures.headOption.getOrElse {
      if (written.isEmpty) Reason(ReasonCode.UnknownColumn, "column" -> column._1)
      else Reason(
        ReasonCode.TypeChanged,
        "column" -> column._1,
        "written" -> written.mkString(", "),
        "read" -> column._2.catalogString)
    }
  }
}
