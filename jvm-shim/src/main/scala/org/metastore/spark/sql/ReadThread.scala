package org.metastore.spark.sql

import java.security.PrivilegedAction
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, ExecutionException, TimeoutException, TimeUnit}

import org.apache.hadoop.security.UserGroupInformation
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * A thread that reads what a table function or the data source answers: storage or a catalog that hangs keeps this thread, and
 * the one that asks can be interrupted.
 *
 * A new thread inherits its maker's session and local properties. The rest is handed over: the user, the settings with which
 * a view is analyzed, and the namespace in which its names are looked up.
 */
private final class ReadThread[T](read: () => T) extends Thread("metastore-read") {
  private val user = UserGroupInformation.getCurrentUser
  private val ofView = Some(SQLConf.get).filterNot(_ eq SparkSession.active.sessionState.conf)
  private val namespace = ViewNamespace.current
  private val result = new CompletableFuture[T]
  setDaemon(true)

  override def run(): Unit = ViewNamespace.within(namespace) {
    val reading: PrivilegedAction[Boolean] = () =>
      try result.complete(ofView.fold(read())(conf => SQLConf.withExistingConf(conf)(read())))
      catch { case e: Throwable => result.completeExceptionally(e) } // also what is fatal: somebody waits for it
    user.doAs(reading)
  }

  private def await(limitMillis: Option[Long]): T = try limitMillis match {
    case Some(limit) => result.get(limit, TimeUnit.MILLISECONDS)
    case None => result.get()
  } catch {
    case e: ExecutionException => throw e.getCause
    case e @ (_: TimeoutException | _: InterruptedException) =>
      ReadThread.hangingThreads.add(this)
      interrupt()
      throw e
  }
}

private[sql] object ReadThread {
  private val MostAbandoned = 64
  private val hangingThreads = ConcurrentHashMap.newKeySet[Thread]()

  /**
   * Reads in a thread of its own.
   *
   * @param limitMillis how long it may take; `None`: as long as it takes
   * @throws TimeoutException     it took longer, or so many reads hang that no other one is begun
   * @throws InterruptedException the thread that waits was interrupted
   */
  def run[T](limitMillis: Option[Long])(read: => T): T = {
    hangingThreads.removeIf(!_.isAlive)
    if (hangingThreads.size >= MostAbandoned) throw new TimeoutException
    val thread = new ReadThread(() => read)
    thread.start()
    thread.await(limitMillis)
  }
}
