package org.metastore.spark.scan

import java.nio.file.{Files, Paths}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, Cast, Descending, Expression, InSet, Literal, SortOrder
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{Count, Max, Min}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{
  ColumnResolver, DeletedRows, FilterCompiler, FilterReader, LiveFiles, RowOrder, Verdicts, WantedRows
}
import org.metastore.spark.statistics.StatisticsStore
import org.metastore.spark.statistics.cache.StatisticsCache
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.TableIdentity

/**
 * Times what planning does with the statistics of one scan: manifest, files of the blocks and their join with the scan's,
 * the filter's columns, verdicts; and what the optimizer is told besides. For benchmarks; the caller lets it warm up.
 *
 * {{{
 * val timer = LookupTimer.open(spark, "a BIGINT", "/warehouse/db/t/_metastore", uuid, "a = 5", "/tmp/files.txt")
 * timer.nanos(runs = 20, cold = true, relisted = true)     // one number a run; `timer.kept` files are left each time
 * }}}
 */
final class LookupTimer private (
    session: SparkSession,
    root: String,
    uuid: String,
    scan: FileList,
    conjuncts: Seq[Expression],
    resolver: ColumnResolver) {
  private var joined = copied()
  private val conf = session.sessionState.newHadoopConf()

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

  /** Nanoseconds of each run of a planner that decides on the files and estimates the rows and all columns that are named. */
  def estimating(runs: Int, cold: Boolean): Array[Long] = {
    val listed = scanFiles(areWhole = false)
    val output = conjuncts.flatMap(_.references).distinct
    val estimate = EstimateRequest(output, resolver, () => Iterator.empty)
    planning(runs, cold) { planner =>
      val planned = planner.plan(scanned(listed), ScanRequest(conjuncts), Some(estimate))
      val numbers = planned.numbers.getOrElse(throw new IllegalStateException(planned.decision.label))
      if (numbers.rowCount.isEmpty) throw new IllegalStateException("nothing is known of the rows")
      output.foreach(column => resolver.key(column, Nil).foreach(numbers.column(_, column.dataType)))
    }
  }

  /**
   * Nanoseconds of each run of a planner that is asked for less than all rows of a table, of which every file matches wholly. The
   * filter names one column of integers.
   *
   * @param what `limit`: ten rows; `top`: the last ten by the first column; `join`: the rows of 10,000 of its values;
   *             `aggregate`: counts and bounds of it
   */
  def asking(what: String, runs: Int, cold: Boolean): Array[Long] = {
    val listed = scanFiles(areWhole = true)
    val first = conjuncts.head.references.head
    val keys =
      (0L until LookupTimer.Keys).map(i => Cast(Literal(i * LookupTimer.Step), first.dataType).eval()).toSet
    val counted = Seq(Count(Literal(1)), Count(first), Min(first), Max(first)).map(_.toAggregateExpression())
    def decide(planner: ScanPlanner): Int = what match {
      case "aggregate" =>
        val request = AggregateRequest(Nil, None, counted, Seq(first.asInstanceOf[AttributeReference]))
        planner.measure(scanned(listed), request).fold(-1)(_.decision.after)
      case _ =>
        val order = if (what == "top") RowOrder.fromSort(SortOrder(first, Descending), resolver) else None
        val wanted = if (what == "join") None else Some(WantedRows(LookupTimer.Wanted, order))
        val request = ScanRequest(if (what == "join") Seq(InSet(first, keys)) else Nil, wanted)
        planner.plan(scanned(listed), request).decision.after
    }
    planning(runs, cold) { planner =>
      val left = decide(planner)
      if (left < 0 || what != "join" && left == scan.length)
        throw new IllegalStateException(s"$what leaves $left files")
    }
  }

  private lazy val table = TableIdentity("iceberg", uuid, root.stripSuffix("/_metastore"), root)

  private def scanned(files: ScanFiles) = ScannedFiles(table, files, resolver, LiveFiles.Unknown)

  private def scanFiles(areWhole: Boolean): ScanFiles = {
    val deleted = if (areWhole) DeletedRows.Zero else DeletedRows.Unknown
    new ScanFiles(scan.paths.indices.map(i =>
      ScanFile(scan.paths(i), scan.sizes(i), None, deleted = deleted)))
  }

  // Each time as if a query began.
  private def planning(runs: Int, cold: Boolean)(plan: ScanPlanner => Unit): Array[Long] = Array.fill(runs) {
    if (cold) StatisticsCache.clear()
    val start = System.nanoTime()
    plan(ScanPlanner.physical(session, new MetastoreConf(session.sessionState.conf)))
    System.nanoTime() - start
  }

  /** Milliseconds for the manifest, for the join with the scan's files, and for the verdicts: medians of some runs, as above. */
  def phases(runs: Int, cold: Boolean, relisted: Boolean): Array[Double] = {
    val all = Array.fill(runs) {
      nanos(1, cold, relisted)
      ended.clone()
    }
    Array.tabulate(ended.length)(phase => all.map(_(phase)).sorted.apply(runs / 2) / 1e6)
  }

  private val ended = new Array[Long](3) // nanoseconds of each phase of the last run

  private def lookUp(): Verdicts = {
    val begin = System.nanoTime()
    val statistics = StatisticsStore.open(root, conf).planning(uuid, LookupTimer.LimitMillis).fold(
      why => throw new IllegalStateException(why.toString),
      identity)
    val filter = FilterCompiler.compile(conjuncts, resolver)
    val known = System.nanoTime()
    val files = statistics.forFiles(joined, filter.columnKeys)
    val found = System.nanoTime()
    val verdicts = filter.evaluate(files)
    Seq(known - begin, found - known, System.nanoTime() - found).copyToArray(ended)
    if (verdicts.unusedConjuncts.nonEmpty)
      throw new IllegalStateException(verdicts.unusedConjuncts.values.head.toString)
    verdicts
  }

  /** The same for a scan that lists its files in random order. */
  def inRandomOrder: LookupTimer = {
    val places = new scala.util.Random(0).shuffle((0 until scan.length).toVector).toArray
    new LookupTimer(
      session,
      root,
      uuid,
      new FileList(places.map(scan.paths(_)), places.map(scan.sizes(_))),
      conjuncts,
      resolver)
  }

  // New strings: a hash that an earlier run computed would flatter the join.
  private def copied(): FileList =
    new FileList(scan.paths.map(path => new String(path.toCharArray)), scan.sizes, scan.modified)
}

object LookupTimer {
  private val LimitMillis = 600000L
  private val Keys = 10000L
  private val Step = 100000000L
  private val Wanted = 10L

  /**
   * @param ddl    the table's columns, all of top level, as in CREATE TABLE
   * @param root   folder of the statistics
   * @param uuid   of the table
   * @param filter as in WHERE
   * @param listing text with a line for each file that the scan lists: size, blank, path
   */
  def open(
      spark: SparkSession,
      ddl: String,
      root: String,
      uuid: String,
      filter: String,
      listing: String): LookupTimer = {
    val manifest = StatisticsStore.open(root, spark.sessionState.newHadoopConf()).manifest().getOrElse(
      throw new IllegalArgumentException(s"there are no statistics in $root"))
    val lines = Files.readAllLines(Paths.get(listing)).toArray(Array.empty[String])
    val (sizes, paths) = lines.map(_.span(_ != ' ')).unzip
    val keys = manifest.blocks.flatMap(_.columns).map(entry => entry.path -> entry.key).toMap
    val resolver: ColumnResolver = (root: Attribute, path: Seq[String]) => keys.get(root.name +: path)
    new LookupTimer(
      spark,
      root,
      uuid,
      new FileList(paths.map(_.drop(1)), sizes.map(_.toLong)),
      new FilterReader(spark, StructType.fromDDL(ddl)).conjuncts(filter),
      resolver)
  }
}
