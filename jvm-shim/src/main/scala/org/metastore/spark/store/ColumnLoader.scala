package org.metastore.spark.store

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.{Reason, ReasonCode}

/** A column of one block, with what it may be used for. */
private[store] final case class Part[T](block: JoinedBlock, served: ServedType, column: T)

/** Where a column stands in one block. */
private[store] final case class Source(block: JoinedBlock, ordinal: Int, served: ServedType, ref: ObjectRef)

/** A row group of a block's summary. */
private[store] final case class RowGroup(block: JoinedBlock, ref: ObjectRef, group: Int)

/**
 * Loads columns of all blocks of a join at once: first the footers, then every row group that is needed, side by side.
 *
 * @param cached the column of a block that was read before
 * @param read   reads a row group of a summary: block, object, row group, number of the block's files
 */
private[store] final class ColumnLoader[T <: AnyRef](
    joined: JoinedFiles, budget: Budget, reader: BlockReader, cached: (Block, Int) => Option[T],
    read: (Block, ObjectRef, Int, Int) => Map[Int, T]) {
  private type Column = (String, DataType)

  private val loaded = mutable.Map.empty[(Block, Int), T]
  private val failed = mutable.Map.empty[ObjectRef, Reason]
  private var sources = Map.empty[Column, Seq[Source]]

  /** Whether everything that the statistics hold of the column could be read. */
  def complete(column: Column): Boolean = !sources(column).exists(source => failed.contains(source.ref))

  /** For each column its parts by block, the least preferred first, or why there are none. */
  def load(columns: Seq[Column]): Map[Column, Either[Reason, Seq[Part[T]]]] = {
    sources = columns.map(column => column -> sourcesOf(column)).toMap
    val needed = sources.values.flatten.toSeq.distinct
    needed.foreach(s => cached(s.block.block, s.ordinal).foreach(found => loaded((s.block.block, s.ordinal)) = found))
    readMissing(needed.filterNot(s => loaded.contains((s.block.block, s.ordinal))))
    columns.map(column => column -> parts(column)).toMap
  }

  private def sourcesOf(column: Column): Seq[Source] = for {
    block <- joined.blocks
    (entry, ordinal) <- block.columns(column._1)
    served = ServedType.of(entry, column._2)
    if served != ServedType.Nothing
    ref <- reader.summaryOf(block.block, ordinal)
  } yield Source(block, ordinal, served, ref)

  private def readMissing(missing: Seq[Source]): Unit = {
    val wanted = missing.groupBy(source => (source.block, source.ref)).toSeq
    val groups = attempt(wanted.map(_._1._2), wanted.map { case ((block, ref), all) =>
      () => reader.rowGroups(ref, all.map(_.ordinal).toSet).map(RowGroup(block, ref, _))
    }).flatten
    attempt(groups.map(_.ref), groups.map { case RowGroup(block, ref, group) =>
      () => read(block.block, ref, group, block.rows.length).map { case (ordinal, value) => (block.block, ordinal) -> value }
    }).foreach(loaded ++= _)
  }

  private def attempt[R](refs: Seq[ObjectRef], reads: Seq[() => R]): Seq[R] =
    refs.zip(PlanningPool.run(reads, budget)).flatMap {
      case (_, Right(result)) => Some(result)
      case (ref, Left(reason)) =>
        failed(ref) = reason
        None
    }

  private def parts(column: Column): Either[Reason, Seq[Part[T]]] = {
    val found = for {
      source <- sources(column)
      if !failed.contains(source.ref)
      value <- loaded.get((source.block.block, source.ordinal))
    } yield Part(source.block, source.served, value)
    if (found.nonEmpty) Right(found) else Left(whyNone(column))
  }

  private def whyNone(column: Column): Reason = {
    val written = joined.blocks.flatMap(_.columns(column._1)).map(_._1.dataType).distinct
    sources(column).flatMap(source => failed.get(source.ref)).headOption.getOrElse {
      if (written.isEmpty) Reason(ReasonCode.UnknownColumn, "column" -> column._1)
      else Reason(
        ReasonCode.TypeChanged, "column" -> column._1, "written" -> written.mkString(", "), "read" -> column._2.catalogString)
    }
  }
}
