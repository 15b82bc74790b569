package org.metastore.spark.statistics.objects

import java.lang.ref.WeakReference
import java.security.PrivilegedExceptionAction

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation

import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}

/**
 * Looks for the newest manifest of a store; seldom if its requests are slow.
 *
 * @param refreshMillis the time for which a result serves further queries
 */
private[statistics] final class ManifestLookup(store: Path, openFiles: => StoreFiles, refreshMillis: Long) {
  private lazy val files = openFiles
  private val root = store.toString

  /** The newest manifest, or a recent one from memory; `None` if the store has none. */
  def find(): Option[Manifest] = latest match {
    case Some(last) if last.isRecent(refreshMillis) => last.manifest
    case _ => read()
  }

  /**
   * Begins `find` beside the planning thread; a call of the result waits for it. If the store is slow, an
   * earlier manifest serves, and the look-up goes on for the next query.
   */
  def begin(limitMillis: Long): Budget => Either[Reason, Option[Manifest]] = latest match {
    case Some(last) if last.isRecent(refreshMillis) => _ => Right(last.manifest)
    case Some(last) if last.servesMeanwhile(limitMillis) =>
      beginReading(limitMillis)
      _ => Right(last.manifest)
    case Some(last) if last.manifest.isDefined =>
      val newest = beginReading(limitMillis)
      budget => budget.half(newest).left.flatMap(serveIfLate(_, last, limitMillis))
    case _ => beginReading(limitMillis)
  }

  /** The earlier manifest if the store was too slow, which is noted; else the reason. */
  private def serveIfLate(
      reason: Reason,
      last: LatestLookup,
      limitMillis: Long): Either[Reason, Option[Manifest]] =
    if (reason.code != ReasonCode.PlanningTimeout) Left(reason)
    else {
      LatestLookups.noteTimeout(root, limitMillis)
      Right(last.manifest)
    }

  private def latest: Option[LatestLookup] = LatestLookups.find(root, files.owner)

  /** Begins to read in a thread that may hang, with the rights of this one. */
  private def beginReading(limitMillis: Long): Budget => Either[Reason, Option[Manifest]] = {
    val user = UserGroupInformation.getCurrentUser
    val reading: PrivilegedExceptionAction[Option[Manifest]] = () => read()
    val begun = PlanningPool.begin(Seq(() => user.doAs(reading)), root, limitMillis)
    begun(_).head
  }

  private def read(): Option[Manifest] = {
    val change = LatestLookups.lastChange
    val begun = System.nanoTime()
    val newest = new ManifestLog(new StoreFolder(files, store, "log")).newest()
    // A local disk answers at once.
    if (!files.areLocal) {
      val owner = new WeakReference(files.owner)
      LatestLookups.keep(root, LatestLookup(owner, newest, change, begun, System.nanoTime() - begun))
    }
    newest
  }
}
