package org.metastore.spark.sql

import java.security.PrivilegedAction
import java.util.concurrent.{
  CompletableFuture, ConcurrentHashMap, ExecutionException, TimeoutException, TimeUnit
}

import org.apache.hadoop.security.UserGroupInformation

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.tables.ViewNamespace

/**
 * A thread that reads the rows of a table function or of the data source. Storage or a catalog that hangs
 * blocks this thread alone: the thread that waits for it can be interrupted.
 */
private[sql] final class ReadThread[T](read: () => T) extends Thread("metastore-read") {
  private val user = UserGroupInformation.getCurrentUser
  private val viewConf = Some(SQLConf.get).filterNot(_ eq SparkSession.active.sessionState.conf)
  private val namespace = ViewNamespace.current
  private val result = new CompletableFuture[T]
  setDaemon(true)

  override def run(): Unit = ViewNamespace.within(namespace) {
    val reading: PrivilegedAction[Boolean] = () =>
      try result.complete(viewConf.fold(read())(conf => SQLConf.withExistingConf(conf)(read())))
      // Fatal errors, too: a thread waits for the result.
      catch { case e: Throwable => result.completeExceptionally(e) }
    user.doAs(reading)
  }

  private def await(limitMillis: Option[Long]): T =
    try limitMillis match {
        case Some(limit) => result.get(limit, TimeUnit.MILLISECONDS)
        case None => result.get()
      }
    catch {
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

  /** Reads in a new thread. */
  def run[T](limitMillis: Option[Long])(read: => T): T = {
    hangingThreads.removeIf(!_.isAlive)
    if (hangingThreads.size >= MostAbandoned) throw new TimeoutException
    val thread = new ReadThread(() => read)
    thread.start()
    thread.await(limitMillis)
  }
}
