package org.metastore.spark.analyze

import java.util.{Map => JavaMap}
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch}

import scala.collection.JavaConverters._
import scala.concurrent.Promise

import org.apache.spark.sql.SparkSession

/**
 * What the attached process may call over py4j: it borrows the session of a statement and answers it.
 *
 * @param ready counted down once the process is attached
 */
final class PythonEntry(ready: CountDownLatch) {
  private final class LentSession(val session: SparkSession, val properties: Map[String, String], val answer: Promise[String])

  private val lent = new ConcurrentHashMap[String, LentSession]()

  /** Lends a session for one statement. */
  def lend(key: String, session: SparkSession, properties: Map[String, String], answer: Promise[String]): Unit =
    lent.put(key, new LentSession(session, properties, answer))

  /** The statement is over: nothing is lent any more. */
  def takeBack(key: String): Unit = lent.remove(key)

  // Called from Python, by these names.

  /** The process is attached and waits for statements. */
  def attached(): Unit = ready.countDown()

  /** The session of a statement; it becomes the active one of the thread that serves Python. */
  def session(key: String): SparkSession = {
    val session = lent.get(key).session
    SparkSession.setActiveSession(session)
    session
  }

  /** The local properties of the statement's thread, for the jobs that Python starts. */
  def properties(key: String): JavaMap[String, String] = lent.get(key).properties.asJava

  /** What there is to tell who waits for a statement. */
  def say(lines: String): Unit = ProgressConsole.print(lines)

  /** The answer to a statement, as JSON. */
  def answer(key: String, json: String): Unit = Option(lent.get(key)).foreach(_.answer.trySuccess(json))
}
