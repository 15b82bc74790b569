package org.metastore.spark.statistics.objects

import java.io.Closeable
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, ExecutionException}

import org.metastore.spark.statistics.cache.{MemoryOnly, StatisticsCache}

/** Bytes of an object from a position on; not to be changed. */
private[statistics] final class BytesFrom(val start: Long, val bytes: Array[Byte])

/** The bytes of one object, not verified. */
private[statistics] sealed trait ObjectBytes extends Closeable {

  /** Bytes that have these among them. */
  def read(start: Long, length: Int): BytesFrom
}

/** Reads one open file; opened at the first read, without asking the storage for its length. */
private[statistics] final class LocalBytes(objects: StoreFolder, ref: ObjectRef) extends ObjectBytes {
  private var file: Option[OpenFile] = None

  override def read(start: Long, length: Int): BytesFrom = {
    val bytes = new Array[Byte](length)
    file = file.orElse(Some(objects.open(ref.name, ref.length)))
    file.get.readFully(start, bytes)
    new BytesFrom(start, bytes)
  }

  override def close(): Unit = file.foreach(_.close())
}

/**
 * Reads an object of a store with slow requests: a small object whole, and small parts of a large one through
 * the driver's cache.
 */
private[statistics] final class RemoteBytes(objects: StoreFolder, ref: ObjectRef) extends ObjectBytes {
  import RemoteBytes._

  override def read(start: Long, length: Int): BytesFrom =
    if (ref.length <= Moderate) readOnce(0, ref.length.toInt)
    else if (length <= Moderate) readOnce(start, length)
    else request(start, length)

  private def readOnce(start: Long, length: Int): BytesFrom = {
    val key = s"${prefixOf(objects, ref)}$start:$length"
    StatisticsCache.get[BytesFrom](key).getOrElse(request(key, start, length))
  }

  /** Sends one request for all threads that need the same bytes at the same time. */
  private def request(key: String, start: Long, length: Int): BytesFrom = {
    MemoryOnly.requireStore()
    val mine = new CompletableFuture[BytesFrom]
    val earlier = running.putIfAbsent(key, mine)
    if (earlier == null)
      try {
        val read = request(start, length)
        StatisticsCache.put(key, read, length.toLong)
        mine.complete(read)
        read
      } catch {
        case e: Throwable =>
          mine.completeExceptionally(e)
          throw e
      } finally running.remove(key, mine)
    else
      // The other thread may have been interrupted, or lack the rights of this one.
      try earlier.get()
      catch { case _: ExecutionException => request(start, length) }
  }

  private def request(start: Long, length: Int): BytesFrom = {
    val bytes = new Array[Byte](length)
    val file = objects.open(ref.name, ref.length)
    try file.readFully(start, bytes)
    finally file.close()
    new BytesFrom(start, bytes)
  }

  override def close(): Unit = ()
}

private[statistics] object RemoteBytes {

  /** Bytes that come about as quickly as the first one of a request. */
  private val Moderate = 1L << 20

  private val running = new ConcurrentHashMap[String, CompletableFuture[BytesFrom]]

  /** Drops the cached bytes of an object. */
  def forget(objects: StoreFolder, ref: ObjectRef): Unit =
    StatisticsCache.removeAll(prefixOf(objects, ref))

  private def prefixOf(objects: StoreFolder, ref: ObjectRef): String =
    s"bytes:${objects.uri}:${ref.name}:${ref.length}:"
}
