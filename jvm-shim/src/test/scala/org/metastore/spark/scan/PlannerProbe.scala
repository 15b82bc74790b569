package org.metastore.spark.scan

import scala.util.control.NonFatal

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.JoinKeys
import org.metastore.spark.pruning.LiveFiles
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.StatisticsStore
import org.metastore.spark.statistics.objects.TableIdentity

/** Asks what becomes of an error while a query is planned, of plans of every scope, and which snapshot estimates are of. */
object PlannerProbe {

  private val LimitMillis = 60000L

  /** What a planner may do to the scans of plans of each scope, a line each. */
  def allowed(session: SparkSession): String = {
    val (row, write) = (Reason(ReasonCode.RowPolicy), Reason(ReasonCode.InsideWrite))
    val scopes = Seq(PlanScope.Everything, PlanScope.NumbersOnly(write), PlanScope.NoChange(row))
    val planners =
      scopes.map(ScanPlanner.logical(session, settings(session), _, mayLimit = true, _ => JoinKeys.Unknown))
    (planners :+ physical(session)).map { planner =>
      import planner._
      s"${restriction.map(_.code)} $estimates $leavesAlone $limits $topRows $answers"
    }.mkString("\n")
  }

  /** What is decided of a scan of a table whose folder nobody can name. */
  def lost(session: SparkSession): String = {
    val nowhere = TableIdentity("parquet", "u", null, "t")
    val scan = ScannedFiles(nowhere, IndexedSeq.empty, (_, _) => None, LiveFiles.Unknown)
    physical(session).plan(scan, ScanRequest(Nil)).decision.outcome.toString
  }

  /** The snapshot that serves estimates for lineages of the newest of a table's statistics, whose ids a comma divides; a line each. */
  def described(session: SparkSession, root: String, uuid: String, lineages: Array[String]): String = {
    val store = StatisticsStore.open(root, session.sessionState.newHadoopConf())
    store.planning(uuid, LimitMillis).fold(
      why => why.toString,
      { known =>
        lineages.map { ids =>
          val found = DistributionSnapshot.choose(known.manifest, ids.split(",").iterator.filter(_.nonEmpty))
          found.fold("none")(one => s"${one.snapshot.id} ${one.isAncestor} ${one.isRead}")
        }.mkString("\n")
      })
  }

  /** What is planned where an estimate fails with a message: something else, or the query ends. */
  def planned(message: String): String =
    try ScanPlanner.recover("A table", "planned without it")(throw new IllegalStateException(message))
    catch { case NonFatal(_) => "ended" }

  /** A column of a name, made by the fields that it needs: of the others some have defaults that look at these. */
  def alias(name: String): String =
    CaseClassCopy.create(classOf[Alias], "child" -> Literal(1), "name" -> name).sql

  private def settings(session: SparkSession) = new MetastoreConf(session.sessionState.conf)

  private def physical(session: SparkSession) = ScanPlanner.physical(session, settings(session))
}
