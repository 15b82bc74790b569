package org.metastore.spark.sql

import java.io.ByteArrayInputStream

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.ipc.ArrowStreamReader

/** User-defined statistics as SQL shows them: a map from name to value, as JSON. docs/format.md: `extra`. */
object UserDefinedStatistics {
  private val MaxBytes = 16 << 10
  private val MaxMemory = 1L << 20
  private val json = new ObjectMapper

  /** The map, as Catalyst's; null where there is none. What is damaged is left out. */
  def texts(extra: Map[String, Array[Byte]]): Any = {
    val found = extra.toSeq.sortBy(_._1).flatMap { case (name, bytes) => text(bytes).map(name -> _) }
    if (found.isEmpty) null else ResultRow.texts(found)
  }

  private def text(bytes: Array[Byte]): Option[String] =
    if (bytes.length > MaxBytes) None
    else try Some(json.writeValueAsString(plain(value(bytes)))) catch { case NonFatal(_) => None }

  private def value(bytes: Array[Byte]): Any = {
    val allocator = new RootAllocator(MaxMemory)
    try {
      val reader = new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator)
      try {
        require(reader.loadNextBatch() && reader.getVectorSchemaRoot.getRowCount == 1)
        reader.getVectorSchemaRoot.getVector(0).getObject(0)
      } finally reader.close()
    } finally allocator.close()
  }

  /** What Jackson writes as JSON: numbers, truth values, lists and maps as they are, all else as text. */
  private def plain(value: Any): Any = value match {
    case null | _: Number | _: java.lang.Boolean => value
    case map: java.util.Map[_, _] => map.asScala.map { case (key, inner) => String.valueOf(key) -> plain(inner) }.toMap.asJava
    case list: java.util.Collection[_] => list.asScala.map(plain).toSeq.asJava
    case other => String.valueOf(other)
  }
}
