package org.metastore.spark.conf

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** What Python and the shim have to say alike: the documents of `contract/`, which the jar carries. */
object Contract {

  private val mapper = new ObjectMapper

  /** A document, by its name without `.json`. */
  def read(name: String): JsonNode = {
    val stream = getClass.getResourceAsStream(s"/metastore-contract/$name.json")
    try mapper.readTree(stream)
    finally stream.close()
  }
}
