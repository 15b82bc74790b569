package org.metastore.spark.scan

import java.io.File
import java.util.concurrent.atomic.AtomicBoolean
import java.util.jar.JarFile

import scala.collection.JavaConverters._

import com.github.luben.zstd.Zstd
import org.slf4j.LoggerFactory

import org.metastore.spark.pruning.FilterCompiler
import org.metastore.spark.reason.Attempt
import org.metastore.spark.statistics.StatisticsStore

/** Loads the classes of planning while a session starts, so that the first query does not wait for them. */
object WarmUp {
  private val log = LoggerFactory.getLogger("org.metastore.spark.scan")
  private val begun = new AtomicBoolean
  @volatile private var done = false

  /** Our packages whose classes plan every query. */
  private val Packages = Seq("conf", "estimates", "pruning", "reason", "scan", "statistics", "tables")

  /** Whether all classes of planning are loaded. */
  def isDone: Boolean = done

  /** Begins to load, once in a driver. Never throws. */
  def begin(): Unit = if (begun.compareAndSet(false, true)) {
    val thread = new Thread(() => run(), "metastore-warm-up")
    thread.setDaemon(true)
    thread.start()
  }

  private def run(): Unit =
    try {
      attempt(loadReaders())
      attempt(planningClasses.foreach(name => attempt(link(name))))
    } finally done = true

  private def attempt(load: => Unit): Unit = Attempt.recover(load) { failure =>
    log.debug("Classes are loaded when they are needed", failure)
  }

  /** Loads the readers of statistics, which would use up the first query's planning timeout. */
  private def loadReaders(): Unit = {
    Zstd.compress(Array.emptyByteArray)
    for (loaded <- StatisticsStore.readingClasses ++ FilterCompiler.pruningClasses)
      Class.forName(loaded.getName, true, loaded.getClassLoader)
  }

  /** The names of the classes of planning; none if our classes come from a folder. */
  private def planningClasses: Seq[String] = {
    val source = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    if (source.isFile) classesIn(source) else Nil
  }

  private def classesIn(source: File): Seq[String] = {
    val root = getClass.getName.stripSuffix("scan.WarmUp$").replace('.', '/')
    val jar = new JarFile(source)
    try jar.entries.asScala.map(_.getName).filter(isPlanningClass(root, _)).map(classOfEntry).toVector
    finally jar.close()
  }

  private def isPlanningClass(root: String, entry: String): Boolean =
    entry.endsWith(".class") && Packages.exists(name => entry.startsWith(s"$root$name/"))

  private def classOfEntry(entry: String): String = entry.stripSuffix(".class").replace('/', '.')

  /** Loads and verifies a class without running its code: an initializer may need a session. */
  private def link(name: String): Unit =
    Class.forName(name, false, getClass.getClassLoader).getDeclaredConstructors
}
