package org.metastore.spark.contract

import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** The documents of `contract/`, which Python and the shim share. The jar holds a copy. */
object Contract {

  private val mapper = new ObjectMapper
  private val documents = new ConcurrentHashMap[String, JsonNode]

  /** A document, by its name without `.json`. The first call parses it. */
  def read(name: String): JsonNode = documents.computeIfAbsent(name, parse(_))

  /** The entries of a list by their names, in order. */
  def named(entries: JsonNode): Seq[(String, JsonNode)] =
    entries.asScala.map(entry => entry.get("name").asText -> entry).toSeq

  /** The texts of a list; empty if the list is missing. */
  def texts(entry: JsonNode, field: String): Seq[String] = entry.path(field).asScala.map(_.asText).toSeq

  /** A number of `limits.json`. */
  def limit(name: String): Long = read("limits").get(name).longValue

  private def parse(name: String): JsonNode = {
    val stream = getClass.getResourceAsStream(s"/metastore-contract/$name.json")
    try mapper.readTree(stream)
    finally stream.close()
  }
}
