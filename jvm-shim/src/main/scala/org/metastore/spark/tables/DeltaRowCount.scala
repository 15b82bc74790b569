package org.metastore.spark.tables

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}

/**
 * The row count of a data file in the statistics of Delta's log.
 *
 * Delta's own method parses the bounds of all columns of each file to get it. Writers put the count first.
 */
private[tables] object DeltaRowCount {
  private val Field = "numRecords"
  private val json = new JsonFactory

  /** The count in the statistics of a file; None where they have none. */
  def parse(statistics: String): Option[Long] =
    if (statistics == null || statistics.isEmpty) None
    else {
      val parser = json.createParser(statistics)
      try if (parser.nextToken() == JsonToken.START_OBJECT) find(parser) else None
      finally parser.close()
    }

  private def find(parser: JsonParser): Option[Long] = {
    while (parser.nextToken() == JsonToken.FIELD_NAME && parser.currentName != Field) {
      parser.nextToken()
      parser.skipChildren()
    }
    val isFound = parser.currentToken == JsonToken.FIELD_NAME
    if (isFound && parser.nextToken() == JsonToken.VALUE_NUMBER_INT) Some(parser.getLongValue)
    else None
  }
}
