package org.metastore.peers

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.util.QueryExecutionListener

/** What was analyzed, and what the statistics did to the queries: written as JSON when the JVM ends. */
object Counts {
  private val numbers = mutable.LinkedHashMap.empty[String, Long]
  private val failures = mutable.LinkedHashSet.empty[String]

  sys.props.get("peers.counts").foreach { file =>
    Runtime.getRuntime.addShutdownHook(new Thread(() => Files.write(Paths.get(file), json.getBytes(UTF_8))))
  }

  def add(name: String, count: Long = 1): Unit = synchronized {
    numbers(name) = numbers.getOrElse(name, 0L) + count
  }

  def failed(message: String): Unit = synchronized {
    add("not analyzed")
    failures += message
  }

  private def json: String = synchronized {
    val fields = numbers.map { case (name, count) => s"${Json.quote(name)}: $count" }
    (fields.toSeq :+ s"${Json.quote("failures")}: ${failures.map(Json.quote).mkString("[", ", ", "]")}").mkString("{", ", ", "}")
  }
}

/** Counts the labels of scans in the plans of the queries of a suite. */
class LabelCounter extends QueryExecutionListener {
  private val scan = """\[Metastore: (\d+) -> (\d+) files[^\]]*\]""".r
  private val answer = """\[Metastore: \d+ files answered""".r
  private val failure = "[Metastore: failed"

  override def onSuccess(name: String, query: QueryExecution, nanoseconds: Long): Unit = count(query)
  override def onFailure(name: String, query: QueryExecution, error: Exception): Unit = count(query)

  private def count(query: QueryExecution): Unit = {
    Counts.add("queries")
    val plan = Try(query.executedPlan.toString).getOrElse("") // a query that was refused has none
    if (plan.contains("[Metastore: ")) {
      Counts.add("queries with a label")
      scan.findAllMatchIn(plan).foreach { label =>
        if (label.group(2).toLong < label.group(1).toLong) Counts.add("scans pruned")
        if (label.matched.contains(", join")) Counts.add("scans with keys of a join")
      }
      Counts.add("scans answered", answer.findAllIn(plan).size.toLong)
      if (plan.contains(failure)) Counts.add("scans failed")
    }
  }
}
