package org.metastore.spark.tables

import java.nio.ByteBuffer
import java.util.{List => JavaList, Map => JavaMap, UUID}

import scala.collection.JavaConverters._

/**
 * The statistics file of a snapshot of an Iceberg table: a Puffin file, which the table's metadata name, with
 * the blobs of all engines that wrote some.
 */
private[tables] final class IcebergStatisticsFile(table: AnyRef, snapshotId: java.lang.Long) {
  import IcebergStatisticsFile._
  import Reflection.{call, callStatic, create, list}

  private val loader = table.getClass.getClassLoader
  private lazy val schema = call[AnyRef](table, "schema")

  /**
   * Writes a file with these sketches, unless the snapshot's file has all of them.
   *
   * @return the columns whose sketches are in the snapshot's file now
   */
  def publish(sketches: Seq[PublishedSketch]): Set[String] = {
    call[AnyRef](table, "refresh")
    val file = currentFile
    val published = sketches.filter(sketch => isPublished(sketch.key))
    val snapshot = call[AnyRef](table, "snapshot", snapshotId)
    val stored = thetaBlobs(file)
    val isNews = snapshot != null && published.exists(sketch => !stored.exists(isOf(sketch, _)))
    if (isNews) register(write(otherBlobs(file, published) ++ published.map(newBlob(_, snapshot))))
    thetaBlobs(currentFile).flatMap(fields(_, "fields")).toSet
  }

  private def currentFile: Option[AnyRef] =
    list(table, "statisticsFiles").find(call[Long](_, "snapshotId") == snapshotId)

  /**
   * Whether to publish a column's sketch: not of a dropped column, nor of UUIDs, which Spark hashes as texts.
   */
  private def isPublished(key: String): Boolean = {
    val columnType = findType(key)
    columnType != null && call[AnyRef](columnType, "typeId").toString != "UUID"
  }

  private def findType(key: String): AnyRef = call[AnyRef](schema, "findType", Integer.valueOf(key))

  /** The metadata of the theta sketches in a file. */
  private def thetaBlobs(file: Option[AnyRef]): Seq[AnyRef] =
    file.toSeq.flatMap(list(_, "blobMetadata")).filter(isTheta)

  private def isOf(sketch: PublishedSketch, blob: AnyRef): Boolean =
    fields(blob, "fields") == Seq(sketch.key) &&
      call[JavaMap[String, String]](blob, "properties").get(Distinct) == sketch.distinct

  private def isTheta(blob: AnyRef): Boolean = call[String](blob, "type") == Theta

  private def fields(blob: AnyRef, name: String): Seq[String] = list(blob, name).map(_.toString)

  /** The blobs of a file without those that these sketches replace, and without those of dropped columns. */
  private def otherBlobs(file: Option[AnyRef], replacing: Seq[PublishedSketch]): Seq[AnyRef] =
    file.toSeq.flatMap(readBlobs(_, isKept(_, replacing.map(_.key))))

  private def isKept(blob: AnyRef, replaced: Seq[String]): Boolean = {
    val columns = fields(blob, "inputFields")
    def isReplaced = isTheta(blob) && columns.length == 1 && replaced.contains(columns.head)
    columns.forall(findType(_) != null) && !isReplaced
  }

  private def readBlobs(file: AnyRef, isRead: AnyRef => Boolean): Seq[AnyRef] = {
    val input = call[AnyRef](call[AnyRef](table, "io"), "newInputFile", call[String](file, "path"))
    val reader = call[AutoCloseable](callStatic[AnyRef](load("puffin.Puffin"), "read", input), "build")
    try {
      val read = list(call[AnyRef](reader, "fileMetadata"), "blobs").filter(isRead)
      list(reader, "readAll", read.asJava).map(copyBlob)
    } finally reader.close()
  }

  private def copyBlob(metadataAndBytes: AnyRef): AnyRef = {
    val metadata = call[AnyRef](metadataAndBytes, "first")
    newBlob(
      call[String](metadata, "type"),
      call[JavaList[Integer]](metadata, "inputFields"),
      call[java.lang.Long](metadata, "snapshotId"),
      call[java.lang.Long](metadata, "sequenceNumber"),
      call[ByteBuffer](metadataAndBytes, "second"),
      call[JavaMap[String, String]](metadata, "properties"))
  }

  private def newBlob(sketch: PublishedSketch, snapshot: AnyRef): AnyRef = newBlob(
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

  /** Writes a file with these blobs; its description is for the table's metadata. */
  private def write(blobs: Seq[AnyRef]): AnyRef = {
    val path = call[String](
      call[AnyRef](table, "operations"),
      "metadataFileLocation",
      s"$snapshotId-${UUID.randomUUID}.stats")
    val output = call[AnyRef](call[AnyRef](table, "io"), "newOutputFile", path)
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
        path,
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
