package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

/** Finds how often a value occurs in the files of one scan, where a list of values tells. */
private[store] final class ValueFrequencies(reader: ValueCountReader, blocks: Seq[BlockJoin], budget: Budget) {

  /**
   * @param point a single value
   * @param among the files that are asked about
   * @return in their order; -1: no list has it
   */
  def load(key: String, dataType: DataType, point: Points, among: Array[Int]): Array[Long] = {
    val found = Fill.longs(among.length, -1)
    val reads = for {
      joined <- blocks if joined.block.computed == "full"
      (entry, ordinal) <- joined.block.columnsOf(key)
      if TypePromotion.of(entry, dataType) == TypePromotion.Full
      details <- CacheEntry.all(Seq(reader.details(joined.block, "frequencies")), budget).flatMap(_.toOption)
      place <- placesOf(details, joined, among)
    } yield (joined, details, place, () => reader.frequencies(details.objects(place), ordinal, dataType, point))
    for (((joined, details, place, _), Right(counts)) <- reads.zip(PlanningPool.run(reads.map(_._4), budget)); i <- among.indices) {
      val file = joined.ordinals(among(i))
      if (file >= 0 && details.place(file) == place) counts.get(details.inside(file)).foreach(found(i) = _)
    }
    found
  }

  private def placesOf(details: DetailObjects, joined: BlockJoin, among: Array[Int]): Seq[Int] =
    among.map(joined.ordinals(_)).filter(_ >= 0).map(details.place(_)).filter(_ >= 0).distinct.toSeq
}
