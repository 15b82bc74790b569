package org.metastore.spark.auto

import java.util.UUID

import scala.collection.concurrent.TrieMap
import scala.util.Try

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.streaming.StreamingQueryListener.{QueryProgressEvent, QueryTerminatedEvent}

import org.metastore.spark.reason.Attempt

/**
 * Analyzes tables after each batch of a stream whose sink has no command in its plan. Such a sink passes rows
 * to the format, and only the query's progress names its table, after the batch.
 */
private[auto] object StreamedWrites {
  private val Query = "sql.streaming.queryId"
  private val Run = "spark.jobGroup.id" // streams run their jobs in a group of their own
  private val followed = TrieMap.empty[UUID, Unit]

  /** Follows the stream of a plan, from its first plan on. */
  def follow(session: SparkSession): Unit = {
    val context = session.sparkContext
    for {
      _ <- Option(context.getLocalProperty(Query))
      run <- Option(context.getLocalProperty(Run)).flatMap(id => Try(UUID.fromString(id)).toOption)
      if followed.putIfAbsent(run, ()).isEmpty
    } context.addSparkListener(new Batches(session, run))
  }

  private final class Batches(session: SparkSession, run: UUID) extends SparkListener {
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case progress: QueryProgressEvent => afterBatch(progress.progress)
      case end: QueryTerminatedEvent if end.runId == run =>
        session.sparkContext.removeSparkListener(this)
        followed.remove(run)
      case _ => ()
    }

    private def afterBatch(batch: StreamingQueryProgress): Unit = {
      val isWritten = batch.runId == run && batch.durationMs.containsKey("addBatch")
      if (isWritten) Attempt.orNone {
        val written = WrittenTable.fromSink(session, batch.sink.description)
        val requested = AnalyzeRequest.fromWrite(session, written)
        requested.foreach(request => AutoAnalyze.follow(session, request.table, waits = false))
      }
    }
  }
}
