package org.metastore.spark.statistics.values

import org.metastore.spark.statistics.objects.{ObjectReader, ObjectRef, RanksRef, RowReader}

/** Looks up the value at a rank, in `table-ranks` objects. */
private[statistics] final class RankReader(objects: ObjectReader, rows: RowReader) {

  /** See [[StatisticsStore.quantiles]]. */
  def quantiles(all: Seq[RanksRef], column: Int, probabilities: Seq[Double]): Option[Seq[Option[Any]]] = {
    val parts = partsOf(all, column)
    if (parts.isEmpty) None
    else {
      val number = lastRank(parts.last.ref, column)
      def quantile(p: Double) =
        number.flatMap(n => atRank(parts, column, math.max(1L, math.ceil(p * n).toLong)))
      Some(probabilities.map(quantile))
    }
  }

  private def partsOf(all: Seq[RanksRef], column: Int): Seq[RanksRef] =
    all.filter(_.columns.contains(column)).sortBy(_.valuesBefore(column))

  /** See [[StatisticsStore.listRanks]]. */
  def all(parts: Seq[RanksRef], column: Int): Seq[(Any, Long)] = for {
    part <- partsOf(parts, column)
    group <- groups(part.ref, column)
    (rank, value) <- read(part.ref, column, group)
  } yield value -> rank

  private def atRank(parts: Seq[RanksRef], column: Int, rank: Long): Option[Any] = {
    val part = parts.filter(_.valuesBefore(column) < rank).last.ref
    firstFrom(part, column, rank, groups(part, column))
  }

  /** The first value at a rank or above it: halves the row groups that may have it. */
  private def firstFrom(ref: ObjectRef, column: Int, rank: Long, groups: IndexedSeq[Int]): Option[Any] =
    if (groups.isEmpty) None
    else {
      val (before, from) = groups.splitAt((groups.size - 1) / 2)
      val ranks = read(ref, column, from.head)
      if (ranks.isEmpty || ranks.last._1 < rank) firstFrom(ref, column, rank, from.tail)
      else if (ranks.head._1 < rank) Some(ranks.dropWhile(_._1 < rank).head._2)
      else firstFrom(ref, column, rank, before).orElse(Some(ranks.head._2))
    }

  private def lastRank(ref: ObjectRef, column: Int): Option[Long] =
    for {
      group <- groups(ref, column).lastOption
      (rank, _) <- read(ref, column, group).lastOption
    } yield rank

  private def read(ref: ObjectRef, column: Int, group: Int): IndexedSeq[(Long, Any)] =
    rows.rows(ref, _ => Seq(group), _.int("column").contains(column)) { row =>
      for (value <- row.value; rank <- row.long("rank")) yield rank -> value
    }.flatten

  private def groups(ref: ObjectRef, column: Int): IndexedSeq[Int] =
    objects.footer(ref).groupsOf(Set(column)).toIndexedSeq
}
