package org.metastore.spark.tables

import java.nio.ByteBuffer
import java.util.{List => JavaList, Map => JavaMap, UUID}

import scala.collection.JavaConverters._

/**
 * What other engines know of the columns of a snapshot of an Iceberg table: a Puffin file, which the table's metadata name. One
 * file belongs to a snapshot, with what all engines have found out.
 */
private[tables] final class IcebergStatisticsFile(table: AnyRef, snapshotId: java.lang.Long) {
  import IcebergStatisticsFile._
  import Reflection.{call, callStatic, create, list}

  private val loader = table.getClass.getClassLoader
  private lazy val schema = call[AnyRef](table, "schema")

  /**
   * Writes a file with these sketches, unless there is one that tells the same.
   *
   * @return the columns of which other engines know now
   */
  def publish(sketches: Seq[PublishedSketch]): Set[String] = {
    call[AnyRef](table, "refresh")
    val (before, wanted) = (current, sketches.filter(sketch => isPublished(sketch.key)))
    val snapshot = Option(call[AnyRef](table, "snapshot", snapshotId))
    val isNews = snapshot.isDefined && wanted.exists(sketch => !before.exists(tells(_, sketch)))
    if (isNews) register(write(before.toSeq.flatMap(others(_, wanted)) ++ wanted.map(blob(_, snapshot.get))))
    current.toSeq.flatMap(list(_, "blobMetadata")).filter(isTheta).flatMap(fields(_, "fields")).toSet
  }

  private def current: Option[AnyRef] =
    list(table, "statisticsFiles").find(call[Long](_, "snapshotId") == snapshotId)

  /** Whether a column's sketch is published: not of a dropped column, and not of UUIDs, which Spark hashes as texts. */
  private def isPublished(key: String): Boolean =
    Option(call[AnyRef](schema, "findType", Integer.valueOf(key))).exists(call[AnyRef](
      _,
      "typeId").toString != "UUID")

  private def tells(file: AnyRef, sketch: PublishedSketch): Boolean = list(file, "blobMetadata").exists {
    known =>
      isTheta(known) && fields(known, "fields") == Seq(sketch.key) &&
      call[JavaMap[String, String]](known, "properties").get(Distinct) == sketch.distinct
  }

  private def isTheta(known: AnyRef): Boolean = call[String](known, "type") == Theta

  private def fields(of: AnyRef, name: String): Seq[String] = list(of, name).map(_.toString)

  /** What a file tells of other columns that there still are. */
  private def others(file: AnyRef, but: Seq[PublishedSketch]): Seq[AnyRef] = {
    val input = call[AnyRef](call[AnyRef](table, "io"), "newInputFile", call[String](file, "path"))
    val reader = call[AutoCloseable](callStatic[AnyRef](load("puffin.Puffin"), "read", input), "build")
    try {
      val kept = list(call[AnyRef](reader, "fileMetadata"), "blobs").filter { known =>
        val of = fields(known, "inputFields")
        of.forall(key => call[AnyRef](schema, "findType", Integer.valueOf(key)) != null) &&
        !(isTheta(known) && but.exists(sketch => of == Seq(sketch.key)))
      }
      list(reader, "readAll", kept.asJava).map { pair =>
        val known = call[AnyRef](pair, "first")
        newBlob(
          call[String](known, "type"),
          call[JavaList[Integer]](known, "inputFields"),
          call[java.lang.Long](known, "snapshotId"),
          call[java.lang.Long](known, "sequenceNumber"),
          call[ByteBuffer](pair, "second"),
          call[JavaMap[String, String]](known, "properties"))
      }
    } finally reader.close()
  }

  private def blob(sketch: PublishedSketch, snapshot: AnyRef): AnyRef = newBlob(
    Theta,
    Seq(Integer.valueOf(sketch.key)).asJava,
    snapshotId,
    call[java.lang.Long](snapshot, "sequenceNumber"),
    ByteBuffer.wrap(sketch.bytes),
    Map(Distinct -> sketch.distinct).asJava)

  private def newBlob(
      kind: String,
      fields: JavaList[Integer],
      snapshot: java.lang.Long,
      sequence: java.lang.Long,
      data: ByteBuffer,
      properties: JavaMap[String, String]): AnyRef =
    create(load("puffin.Blob"), kind, fields, snapshot, sequence, data, null, properties)

  /** Writes a file with these and says what the table's metadata is to know of it. */
  private def write(blobs: Seq[AnyRef]): AnyRef = {
    val place = call[String](
      call[AnyRef](table, "operations"),
      "metadataFileLocation",
      s"$snapshotId-${UUID.randomUUID}.stats")
    val output = call[AnyRef](call[AnyRef](table, "io"), "newOutputFile", place)
    val builder = call[AnyRef](
      callStatic[AnyRef](load("puffin.Puffin"), "write", output),
      "createdBy",
      "pyspark-metastore")
    val writer = call[AutoCloseable](builder, "build")
    try {
      blobs.foreach(call[AnyRef](writer, "add", _))
      call[AnyRef](writer, "finish")
      val written =
        list(writer, "writtenBlobsMetadata").map(callStatic[AnyRef](load("GenericBlobMetadata"), "from", _))
      create(
        load("GenericStatisticsFile"),
        snapshotId,
        place,
        Long.box(call[Long](writer, "fileSize")),
        Long.box(call[Long](writer, "footerSize")),
        written.asJava)
    } finally writer.close()
  }

  private def register(file: AnyRef): Unit = {
    val update = call[AnyRef](table, "updateStatistics")
    try call[AnyRef](update, "setStatistics", file)
    // before Iceberg 1.8
    catch { case _: UnsupportedRelease => call[AnyRef](update, "setStatistics", snapshotId, file) }
    call[AnyRef](update, "commit")
    ()
  }

  private def load(name: String): Class[_] = Reflection.load(s"org.apache.iceberg.$name", loader)
}

private object IcebergStatisticsFile {
  val Theta = "apache-datasketches-theta-v1"
  val Distinct = "ndv"
}
