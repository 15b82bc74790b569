package org.metastore.spark.tables

/**
 * Values that a table's metadata gives to all rows of a data file.
 *
 * @param known   stored texts by column key; null is null
 * @param unknown keys of columns whose values are unknown
 */
final case class FileConstants(known: Map[String, String] = Map.empty, unknown: Seq[String] = Nil) {
  def ++(more: FileConstants): FileConstants = FileConstants(known ++ more.known, unknown ++ more.unknown)
}

object FileConstants {

  /** The constants of partition columns, from the texts of their values in the metadata. */
  def ofTexts(columns: Seq[Leaf], texts: Map[String, String]): FileConstants = {
    val known = Map.newBuilder[String, String]
    val unknown = Seq.newBuilder[String]
    for (column <- columns) {
      val text = texts.getOrElse(column.path.head, "")
      StoredText.parse(text, column.dataType) match {
        case Some(stored) => known += column.key -> stored.orNull
        case None => unknown += column.key
      }
    }
    FileConstants(known.result(), unknown.result())
  }
}
