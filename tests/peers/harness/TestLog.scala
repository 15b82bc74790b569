package org.metastore.peers

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths, StandardOpenOption}

import org.scalatest.Reporter
import org.scalatest.events._

/** Writes the result of each test as a line of JSON, as soon as it is there. */
class TestLog extends Reporter {
  private val file = Paths.get(sys.props("peers.log"))

  override def apply(event: Event): Unit = event match {
    case e: TestStarting => write(e.suiteId, e.testName, "started", None, None)
    case e: TestSucceeded => write(e.suiteId, e.testName, "passed", e.duration, None)
    case e: TestFailed => write(e.suiteId, e.testName, "failed", e.duration, Some(message(e.message, e.throwable)))
    case e: TestCanceled => write(e.suiteId, e.testName, "canceled", e.duration, Some(e.message))
    case e: TestIgnored => write(e.suiteId, e.testName, "ignored", None, None)
    case e: SuiteAborted => write(e.suiteId, "(the suite itself)", "failed", e.duration, Some(message(e.message, e.throwable)))
    case e: RunAborted => write("", "(the run itself)", "failed", e.duration, Some(message(e.message, e.throwable)))
    case _ => ()
  }

  private def message(text: String, error: Option[Throwable]): String = {
    val causes = Iterator.iterate(error.flatMap(e => Option(e.getCause)))(_.flatMap(e => Option(e.getCause)))
    (text +: causes.takeWhile(_.isDefined).flatten.take(3).map(_.toString).toSeq).mkString("\ncaused by ")
  }

  private def write(suite: String, test: String, result: String, millis: Option[Long], text: Option[String]): Unit = synchronized {
    val fields = Seq("suite" -> Json.quote(suite), "test" -> Json.quote(test), "result" -> Json.quote(result)) ++
      millis.map(value => "millis" -> value.toString) ++ text.map(value => "message" -> Json.quote(value))
    val line = fields.map { case (name, value) => s"${Json.quote(name)}: $value" }.mkString("{", ", ", "}\n")
    Files.write(file, line.getBytes(UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND)
  }
}

private[peers] object Json {
  def quote(text: String): String = "\"" + text.flatMap {
    case '"' => "\\\""
    case '\\' => "\\\\"
    case '\n' => "\\n"
    case other if other < ' ' || other > '~' => f"\\u${other.toInt}%04x"
    case other => other.toString
  } + "\""
}
