package org.metastore.spark.explain

import java.lang.ref.WeakReference
import java.util.{ArrayDeque, Locale, WeakHashMap}

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.metastore.ListenerQueue
import org.apache.spark.sql.util.QueryExecutionListener

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.{Attempt, MetastoreException}
import org.metastore.spark.scan.ScanDecisions

/**
 * The decision on one scan of a query that ran.
 *
 * @param endedMillis when the query ended, since the epoch
 * @param reasons     each cause of unread data files with their number; only the reason, with 0, if the scan
 *                    was not pruned
 */
final case class HistoryEntry(
    endedMillis: Long,
    table: String,
    files: Long,
    filesRead: Long,
    bytesSkipped: Long,
    planningMillis: Long,
    reasons: Seq[(String, Long)])

/**
 * Follows the queries of one session: counts what pruning did, and keeps the newest decisions while
 * `spark.metastore.history.enabled` is on.
 */
private final class PruningHistory(session: WeakReference[SparkSession]) extends QueryExecutionListener {
  private val entries = new ArrayDeque[HistoryEntry]

  def all: Seq[HistoryEntry] = synchronized(entries.asScala.toList)

  // A clone of the session has its listeners, too.
  override def onSuccess(function: String, query: QueryExecution, nanoseconds: Long): Unit =
    if (session.get eq query.sparkSession)
      Attempt.orNone {
        val conf = MetastoreConf.fromSession(query.sparkSession)
        if (conf.enabled) {
          val scans = ScanDecisions.fromPlan(query.executedPlan)
          val planning = PruningHistory.planningMillis(query)
          PruningMetrics.count(scans, planning)
          if (conf.historyEnabled) keep(scans, planning)
        }
      }

  override def onFailure(function: String, query: QueryExecution, failure: Exception): Unit = ()

  private def keep(scans: Seq[ScanDecision], planning: Long): Unit = synchronized {
    val now = System.currentTimeMillis
    for (scan <- scans) {
      val read = scan.after.toLong
      entries.addLast(
        HistoryEntry(now, scan.table, scan.total, read, scan.bytesSkipped, planning, scan.unread))
    }
    while (entries.size > PruningHistory.MaxEntries) entries.removeFirst()
  }
}

object PruningHistory {
  private val MaxEntries = 10000
  private val AwaitMillis = 500L
  private val PlanningPhases = Seq("optimization", "planning")
  private val bySession = new WeakHashMap[SparkSession, PruningHistory]

  private def planningMillis(query: QueryExecution): Long =
    (for (name <- PlanningPhases; phase <- query.tracker.phases.get(name)) yield phase.durationMs).sum

  /** Begins to follow the queries of a session, unless it is followed already. */
  private[explain] def follow(session: SparkSession): Unit = synchronized {
    if (!bySession.containsKey(session)) {
      PruningMetrics.show(session.sparkContext)
      val history = new PruningHistory(new WeakReference(session))
      bySession.put(session, history)
      session.listenerManager.register(history)
    }
  }

  /** The scans of a session's queries, the oldest first; of one table, by its name or the end of its name. */
  def list(session: SparkSession, table: Option[String]): Seq[HistoryEntry] = {
    ListenerQueue.await(session, AwaitMillis)
    val history = synchronized(Option(bySession.get(session)))
    val entries = history.toSeq.flatMap(_.all)
    if (entries.isEmpty) requireEnabled(session)
    entries.filter(entry => table.forall(isNamed(entry.table, _)))
  }

  /** Whether a name is the table's name, or the end of it. */
  private def isNamed(table: String, name: String): Boolean = {
    val fullName = normalize(table)
    val end = normalize(name)
    fullName == end || fullName.endsWith(s".$end")
  }

  private def normalize(name: String): String = name.replace("`", "").toLowerCase(Locale.ROOT)

  /** Raises METASTORE_INVALID_ARGUMENT if a setting keeps queries from being noted. */
  private def requireEnabled(session: SparkSession): Unit = {
    val conf = MetastoreConf.fromSession(session)
    if (!conf.enabled) throw notNoted(MetastoreConf.Enabled.key)
    if (!conf.historyEnabled) throw notNoted(MetastoreConf.HistoryEnabled.key)
  }

  private def notNoted(setting: String): MetastoreException =
    MetastoreException.invalidArgument(
      "metastore.history",
      s"no query of this session was noted, because $setting is false",
      s" SET $setting = true before the queries that are to be noted.")
}

/** Begins to follow a session with its first query. */
final class PruningHistoryRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (new MetastoreConf(SQLConf.get).enabled) Attempt.orNone(PruningHistory.follow(session))
    plan
  }
}
