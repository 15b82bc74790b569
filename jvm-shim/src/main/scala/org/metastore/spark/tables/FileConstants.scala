package org.metastore.spark.tables

/**
 * Values that a table's metadata gives to all rows of a data file.
 *
 * @param values  stored texts by column key; null is null
 * @param unknown keys of columns whose values are unknown
 */
final case class FileConstants(values: Map[String, String] = Map.empty, unknown: Seq[String] = Nil) {
  def ++(more: FileConstants): FileConstants = FileConstants(values ++ more.values, unknown ++ more.unknown)
}

object FileConstants {

  /** The constants of partition columns, from the texts of their values in the metadata. */
  def fromTexts(columns: Seq[Leaf], texts: Map[String, String]): FileConstants = {
    val values = Map.newBuilder[String, String]
    val unknown = Seq.newBuilder[String]
    for (column <- columns) {
      val text = texts.getOrElse(column.path.head, "")
      StoredText.parse(text, column.dataType) match {
        case Some(stored) => values += column.key -> stored.orNull
        case None => unknown += column.key
      }
    }
    FileConstants(values.result(), unknown.result())
  }
}
