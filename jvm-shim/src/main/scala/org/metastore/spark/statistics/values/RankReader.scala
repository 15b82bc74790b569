package org.metastore.spark.statistics.values

import org.metastore.spark.statistics.objects.{ObjectReader, ObjectRef, RanksRef, RowReader}

/** Looks up which value stands at a rank, in `table-ranks` objects. */
private[statistics] final class RankReader(objects: ObjectReader, rows: RowReader) {

  /** See [[StatisticsStore.quantiles]]. */
  def quantiles(all: Seq[RanksRef], column: Int, probabilities: Seq[Double]): Option[Seq[Option[Any]]] = {
    val parts = all.filter(_.columns.contains(column)).sortBy(_.valuesBefore(column))
    parts.lastOption.map { last =>
      val number = lastRank(last.ref, column)
      probabilities.map(p =>
        number.flatMap(n => atRank(parts, column, math.max(1L, math.ceil(p * n).toLong))))
    }
  }

  /** See [[StatisticsStore.listRanks]]. */
  def all(parts: Seq[RanksRef], column: Int): Seq[(Any, Long)] = for {
    part <- parts.filter(_.columns.contains(column)).sortBy(_.valuesBefore(column))
    group <- groups(part.ref, column)
    (rank, value) <- read(part.ref, column, group)
  } yield value -> rank

  private def atRank(parts: Seq[RanksRef], column: Int, rank: Long): Option[Any] = {
    val part = parts.filter(_.valuesBefore(column) < rank).last.ref
    firstFrom(part, column, rank, groups(part, column))
  }

  /** The value of the first row from a rank on, by halving the row groups that may have it. */
  private def firstFrom(ref: ObjectRef, column: Int, rank: Long, groups: IndexedSeq[Int]): Option[Any] =
    if (groups.isEmpty) None
    else {
      val (before, from) = groups.splitAt((groups.size - 1) / 2)
      val found = read(ref, column, from.head)
      if (found.lastOption.forall(_._1 < rank)) firstFrom(ref, column, rank, from.tail)
      else if (found.head._1 < rank) found.find(_._1 >= rank).map(_._2)
      else firstFrom(ref, column, rank, before).orElse(Some(found.head._2))
    }

  private def lastRank(ref: ObjectRef, column: Int): Option[Long] =
    groups(ref, column).lastOption.flatMap(group => read(ref, column, group).lastOption.map(_._1))

  private def read(ref: ObjectRef, column: Int, group: Int): IndexedSeq[(Long, Any)] =
    rows.rows(ref, _ => Seq(group)) { row =>
      val value =
        row.long("value_long").orElse[Any](row.double("value_double")).orElse(row.bytes("value_binary"))
      value.filter(_ => row.int("column").contains(column)).flatMap(v => row.long("rank").map(_ -> v))
    }

  private def groups(ref: ObjectRef, column: Int): IndexedSeq[Int] =
    objects.footer(ref).groupsOf(Set(column)).toIndexedSeq
}
