package org.metastore.spark.store

import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import com.github.luben.zstd.Zstd
import org.slf4j.LoggerFactory

/**
 * Loads the classes and the native library that read statistics, beside the start of a session: the first query would pay for
 * them from its planning timeout, which is about storage.
 */
object WarmUp {
  private val log = LoggerFactory.getLogger("org.metastore.spark.store")
  private val begun = new AtomicBoolean
  @volatile private var done = false

  /** Whether reading is only reading from now on. */
  def isDone: Boolean = done

  /** Begins, once a driver. Never throws. */
  def begin(): Unit = if (begun.compareAndSet(false, true)) {
    val thread = new Thread(() => run(), "metastore-warm-up")
    thread.setDaemon(true)
    thread.start()
  }

  private def run(): Unit =
    try {
      ManifestReader.sha256(Array.emptyByteArray, 0, 0)
      Zstd.compress(Array.emptyByteArray)
      val here = getClass.getName.stripSuffix("WarmUp$")
      val beside = here.stripSuffix("store.") + "pruning."
      (Classes.map(here + _) ++ Pruning.map(beside + _) ++ Others).foreach(Class.forName(_, true, getClass.getClassLoader))
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        log.debug("The classes that read statistics are loaded when they are needed", e)
    } finally done = true

  private val Classes = Seq(
    "ManifestReader$", "ManifestLog", "ObjectReader", "VerifiedFooter$", "CompactThrift", "RowGroupMemory$", "ChunkPages",
    "PageHead$", "FlatDecoder$", "LevelRuns$", "PackedIntegers", "PackedBytes$", "BlockReader", "BlockColumnLoader",
    "SummaryGroup", "ColumnLoader", "Joining", "PlanningFiles", "ZoneAssembler", "PlanningPool$")
  private val Pruning = Seq("PruningRule$", "Leaves", "Evaluation")
  private val Others = Seq("org.apache.parquet.column.page.DataPageV1", "com.fasterxml.jackson.databind.ObjectMapper")
}
