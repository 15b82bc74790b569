package org.metastore.spark.pruning

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.store.{FileList, StatisticsCache, StatisticsStore}

/**
 * Times what planning does with the statistics of one scan: manifest, files of the blocks and their join with the scan's,
 * the filter's columns, verdicts. For benchmarks; the caller lets it warm up.
 *
 * {{{
 * val timer = LookupTimer.open(spark, "a BIGINT", "/warehouse/db/t/_metastore", uuid, "a = 5", shuffled = false)
 * timer.nanos(runs = 20, cold = true, relisted = true)     // one number a run; `timer.kept` files are left each time
 * }}}
 */
final class LookupTimer private (
    store: () => StatisticsStore, uuid: String, scan: FileList, conjuncts: Seq[Expression], resolver: ColumnResolver) {
  private var joined = copied()

  /** Files that the filter leaves. */
  def kept: Int = lookUp().keptCount

  /**
   * Nanoseconds of each run.
   *
   * @param cold     nothing is cached; else all is, as for the second query on a snapshot
   * @param relisted the scan's list of files is a new one; else it is the one of the run before, joined already
   */
  def nanos(runs: Int, cold: Boolean, relisted: Boolean): Array[Long] = Array.fill(runs) {
    if (cold) StatisticsCache.clear()
    if (relisted) joined = copied()
    val start = System.nanoTime()
    lookUp()
    System.nanoTime() - start
  }

  private def lookUp(): Verdicts = {
    val statistics = store().planning(uuid, LookupTimer.LimitMillis).fold(why => throw new IllegalStateException(why.toString), identity)
    val filter = PruningRule.compile(conjuncts, resolver)
    val verdicts = filter.evaluate(statistics.of(joined, filter.needs))
    if (verdicts.unused.nonEmpty) throw new IllegalStateException(verdicts.unused.values.head.toString)
    verdicts
  }

  // New strings: a hash that an earlier run computed would flatter the join.
  private def copied(): FileList = new FileList(scan.paths.map(path => new String(path.toCharArray)), scan.sizes, scan.modified)
}

object LookupTimer {
  private val LimitMillis = 600000L

  /**
   * @param ddl    the table's columns, all of top level, as in CREATE TABLE
   * @param root   folder of the statistics
   * @param uuid   of the table; its files are all that the statistics know
   * @param filter as in WHERE
   * @param shuffled the scan lists its files in random order, not in the order of the statistics
   */
  def open(
      spark: SparkSession, ddl: String, root: String, uuid: String, filter: String, shuffled: Boolean): LookupTimer = {
    val conf = spark.sessionState.newHadoopConf()
    val store = StatisticsStore.open(root, conf)
    val manifest = store.manifest().getOrElse(throw new IllegalArgumentException(s"there are no statistics in $root"))
    val stored = manifest.blocks.flatMap(store.dataFiles(_))
    val files = if (shuffled) new scala.util.Random(0).shuffle(stored) else stored
    val keys = manifest.blocks.flatMap(_.columns).map(entry => entry.path -> entry.key).toMap
    val resolver: ColumnResolver = (root: Attribute, path: Seq[String]) => keys.get(root.name +: path)
    new LookupTimer(
      () => StatisticsStore.open(root, conf), uuid, new FileList(files.map(_.path).toArray, files.map(_.size).toArray),
      new FilterReader(spark, StructType.fromDDL(ddl)).conjuncts(filter), resolver)
  }
}
