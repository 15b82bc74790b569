package org.metastore.spark.statistics.values

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.metastore.spark.statistics.objects.{Block, ObjectReader, ObjectRef, RowGroup}

/**
 * The objects that hold the details of one kind of a block's data files.
 *
 * @param place  by file: the place among the objects of the one with its details, or -1
 * @param inside by file: the place in that object
 */
private[statistics] final class DetailObjects(
    val objects: IndexedSeq[ObjectRef],
    val place: Array[Int],
    val inside: Array[Int]) {
  def weight: Long = objects.size * DetailObjects.ObjectBytes + place.length * DetailObjects.FileBytes
}

private[statistics] object DetailObjects {
  private val ObjectBytes = 400L
  private val FileBytes = 8L

  /** No details of some files. */
  def none(files: Int): DetailObjects =
    new DetailObjects(IndexedSeq.empty, Array.fill(files)(-1), Array.emptyIntArray)

  /** Reads where the details are. If the object lacks the columns about them, there are none. */
  def read(reader: ObjectReader, block: Block, kind: String): DetailObjects = {
    val footer = reader.footer(block.files)
    val files = Math.toIntExact(block.files.rows)
    val fields =
      Seq("name", "length", "footer_length", "footer_sha256", "file").map(field => s"${kind}_$field")
    val found = new Builder(files, kind)
    val groups = if (fields.forall(footer.has)) footer.rowGroups.indices else Nil
    groups.foreach(RowGroup.read(reader, block.files, _, "file" +: fields)(found.add))
    found.result()
  }

  private final class Builder(files: Int, kind: String) {
    private val places = mutable.HashMap.empty[ObjectRef, Int]
    private val objects = IndexedSeq.newBuilder[ObjectRef]
    private val place = Array.fill(files)(-1)
    private val inside = new Array[Int](files)

    def add(rows: RowGroup): Unit = {
      val ordinals = rows.longs("file", -1)
      val names = rows.bytes(s"${kind}_name")
      val lengths = rows.longs(s"${kind}_length", -1)
      val footers = rows.longs(s"${kind}_footer_length", -1)
      val digests = rows.bytes(s"${kind}_footer_sha256")
      val insides = rows.longs(s"${kind}_file", -1)
      for (i <- ordinals.indices if names(i) != null && digests(i) != null && insides(i) >= 0) {
        val file = Math.toIntExact(ordinals(i))
        if (file < 0 || file >= files) throw new IllegalArgumentException(s"it has a row for file $file")
        // Only the footer's digest is asked for: it vouches for every part that is read.
        val ref = ObjectRef(
          text(names(i)),
          lengths(i),
          "",
          ObjectRef.AnyRows,
          Math.toIntExact(footers(i)),
          text(digests(i)))
        place(file) = places.getOrElseUpdate(ref, register(ref))
        inside(file) = Math.toIntExact(insides(i))
      }
    }

    private def register(ref: ObjectRef): Int = {
      ObjectRef.requireName(ref, kind)
      objects += ref
      places.size
    }

    def result(): DetailObjects = new DetailObjects(objects.result(), place, inside)
  }

  private def text(bytes: Array[Byte]): String = new String(bytes, UTF_8)
}
