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
 * What was decided about one scan of a query that ran.
 *
 * @param endedMillis when the query ended, since the epoch
 * @param reasons     what left data files unread, and how many; or why the scan was left alone, with none
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
 * Follows the queries of one session: counts what pruning did, and keeps it while `spark.metastore.history.enabled` is on, the
 * newest of it.
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

  override def onFailure(function: String, query: QueryExecution, why: Exception): Unit = ()

  private def keep(scans: Seq[ScanDecision], planning: Long): Unit = {
    val now = System.currentTimeMillis
    val made = scans.map { scan =>
      HistoryEntry(now, scan.table, scan.total, scan.after.toLong, scan.bytesSkipped, planning, scan.unread)
    }
    synchronized {
      made.foreach(entries.addLast)
      while (entries.size > PruningHistory.Most) entries.removeFirst()
    }
  }
}

object PruningHistory {
  private val Most = 10000
  private val Patience = 500L // milliseconds
  private val Planning = Seq("optimization", "planning")
  private val ofSessions = new WeakHashMap[SparkSession, PruningHistory]

  private def planningMillis(query: QueryExecution): Long =
    (for (name <- Planning; phase <- query.tracker.phases.get(name)) yield phase.durationMs).sum

  /** Notes the queries of a session from now on. */
  private[explain] def follow(session: SparkSession): Unit = synchronized {
    if (!ofSessions.containsKey(session)) {
      PruningMetrics.show(session.sparkContext)
      val history = new PruningHistory(new WeakReference(session))
      ofSessions.put(session, history)
      session.listenerManager.register(history)
    }
  }

  /** The scans of a session's queries, the oldest first; of a table, by its name or the end of it. */
  def list(session: SparkSession, table: Option[String]): Seq[HistoryEntry] = {
    ListenerQueue.await(session, Patience)
    val known = synchronized(Option(ofSessions.get(session)))
    val noted = known.fold(Seq.empty[HistoryEntry])(_.all)
    requireNoted(session, noted)
    def plain(name: String): String = name.replace("`", "").toLowerCase(Locale.ROOT)
    noted.filter { entry =>
      table.map(plain).forall(name => plain(entry.table) == name || plain(entry.table).endsWith(s".$name"))
    }
  }

  private def requireNoted(session: SparkSession, noted: Seq[HistoryEntry]): Unit = {
    val conf = MetastoreConf.fromSession(session)
    val off = Seq(
      MetastoreConf.Enabled -> conf.enabled,
      MetastoreConf.HistoryEnabled -> conf.historyEnabled).find(!_._2).map(_._1.key)
    for (setting <- off if noted.isEmpty) {
      throw MetastoreException.invalidArgument(
        "metastore.history",
        s"no query of this session was noted, because $setting is false",
        s" SET $setting = true before the queries that are to be noted.")
    }
  }
}

/** Begins to note what pruning does with a session's first query. */
final class PruningHistoryRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (new MetastoreConf(SQLConf.get).enabled) Attempt.orNone(PruningHistory.follow(session))
    plan
  }
}
