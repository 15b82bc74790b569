package org.metastore.spark.statistics.values

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.metastore.spark.statistics.objects.{Block, ObjectReader, ObjectRef, RowGroup}

/**
 * The objects that hold one kind of details of a block's data files.
 *
 * @param objectOf  the index of the object with the details of each file, or -1
 * @param ordinalOf the ordinal of each file in its object
 */
private[statistics] final class DetailObjects(
    val objects: IndexedSeq[ObjectRef],
    val objectOf: Array[Int],
    val ordinalOf: Array[Int]) {
  def weight: Long = objects.size * DetailObjects.ObjectBytes + objectOf.length * DetailObjects.FileBytes
}

private[statistics] object DetailObjects {
  private val ObjectBytes = 400L
  private val FileBytes = 8L

  /** No details of any file. */
  def none(files: Int): DetailObjects =
    new DetailObjects(IndexedSeq.empty, Array.fill(files)(-1), Array.emptyIntArray)

  /** Reads which objects hold the details; none if the block's object of files has no columns about them. */
  def read(reader: ObjectReader, block: Block, kind: String): DetailObjects = {
    val footer = reader.footer(block.files)
    val files = Math.toIntExact(block.files.rows)
    val fields =
      Seq("name", "length", "footer_length", "footer_sha256", "file").map(field => s"${kind}_$field")
    val builder = new Builder(files, kind)
    val groups = if (fields.forall(footer.has)) footer.rowGroups.indices else Nil
    groups.foreach(RowGroup.read(reader, block.files, _, "file" +: fields)(builder.add))
    builder.result()
  }

  private final class Builder(files: Int, kind: String) {
    private val indices = mutable.HashMap.empty[ObjectRef, Int]
    private val objects = IndexedSeq.newBuilder[ObjectRef]
    private val objectOf = Array.fill(files)(-1)
    private val ordinalOf = new Array[Int](files)

    def add(rows: RowGroup): Unit = {
      val blockOrdinals = rows.longs("file", -1)
      val names = rows.bytes(s"${kind}_name")
      val lengths = rows.longs(s"${kind}_length", -1)
      val footers = rows.longs(s"${kind}_footer_length", -1)
      val digests = rows.bytes(s"${kind}_footer_sha256")
      val ordinals = rows.longs(s"${kind}_file", -1)
      for (i <- blockOrdinals.indices if names(i) != null && digests(i) != null && ordinals(i) >= 0) {
        val file = Math.toIntExact(blockOrdinals(i))
        if (file < 0 || file >= files) throw new IllegalArgumentException(s"it has a row for file $file")
        // The footer's digest is enough: the footer has the digests of all parts.
        val ref = ObjectRef(
          text(names(i)),
          lengths(i),
          "",
          ObjectRef.AnyRows,
          Math.toIntExact(footers(i)),
          text(digests(i)))
        objectOf(file) = indices.getOrElseUpdate(ref, register(ref))
        ordinalOf(file) = Math.toIntExact(ordinals(i))
      }
    }

    private def register(ref: ObjectRef): Int = {
      ObjectRef.requireName(ref, kind)
      objects += ref
      indices.size
    }

    def result(): DetailObjects = new DetailObjects(objects.result(), objectOf, ordinalOf)
  }

  private def text(bytes: Array[Byte]): String = new String(bytes, UTF_8)
}
