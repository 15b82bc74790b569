package org.metastore.spark.statistics.objects

import java.nio.charset.StandardCharsets.UTF_8
import java.util.regex.Pattern

import scala.collection.JavaConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import org.apache.commons.codec.binary.Hex

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{DamagedObjectException, FormatTooNewException, Indexed}

/** Reads a manifest's bytes: checksum first, then the JSON, every field checked before it is used. */
private[statistics] object ManifestReader {
  // writers aim at 1 MB, which very wide schemas pass
  val MaxBytes: Int = Contract.limit("manifest_bytes").toInt
  private val Format = Contract.limit("format_version")
  // Writers merge down to 64 blocks; more remain if blocks cannot share a list of columns.
  private val MaxBlocks = Contract.limit("manifest_blocks")
  private val Known = Set.empty[String] // entries of `requires` that this reader understands
  private val Computed = Set("files", "footer", "full")
  private val Digest = Pattern.compile("[0-9a-f]{64}")
  private val Casting = // formats whose readers cast a float to a double through its text
    Indexed.set(Contract.named(Contract.read("formats")).filter(_._2.path("casts").asBoolean))(_._1)
  private val json = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)

  def read(name: String, bytes: Array[Byte]): Manifest = new ManifestReader(name).read(bytes)

}

private final class ManifestReader(name: String) {
  import ManifestReader._

  private var casts = false

  private type Schemas = IndexedSeq[IndexedSeq[ColumnEntry]]

  private def damaged(damage: String): Nothing = throw new DamagedObjectException(name, damage)

  private def read(bytes: Array[Byte]): Manifest = {
    val (line, fingerprint) = verifyLine(bytes)
    val root =
      try json.readTree(bytes, 0, line)
      catch { case e: JsonProcessingException => throw new DamagedObjectException(name, "it is not JSON", e) }
    if (root == null || !root.isObject) damaged("it is not a JSON object")
    refuseNewer(root)
    val identity = table(child(root, "table"))
    casts = Casting(identity.format)
    val schemas = optionalList(root, "schemas").map(entries)
    val blocks = array(root, "blocks")
    if (blocks.size > MaxBlocks) damaged(s"it has ${blocks.size} blocks")
    nullableText(root, "previous")
    for {
      nodes <- Seq("nodes", "detail_nodes")
      node <- optionalList(root, nodes)
    } objectRef(node, ObjectRef.kindOf(text(node, "name")))
    Manifest(
      long(root, "sequence"),
      text(root, "commit"),
      text(root, "written_at"),
      text(root, "writer"),
      identity,
      settings(root),
      blocks.map(block(_, schemas)),
      array(root, "snapshots").map(snapshot(_, schemas)),
      fingerprint)
  }

  /** Verifies the second line and returns the length of the first, line feed included, and its digest. */
  private def verifyLine(bytes: Array[Byte]): (Int, String) = {
    if (bytes.length > MaxBytes) damaged(s"it has ${bytes.length} bytes")
    var line = 0
    while (line < bytes.length && bytes(line) != '\n') line += 1
    line = if (line < bytes.length) line + 1 else 0
    val checksum = new String(bytes, line, bytes.length - line, UTF_8)
    val digest = Hex.encodeHexString(Sha256.digest(bytes, 0, line))
    if (line == 0 || checksum != s"sha256:$digest\n") damaged("its checksum does not agree")
    (line, digest)
  }

  private def refuseNewer(root: JsonNode): Unit = {
    val format = long(root, "format")
    val unknown = optionalList(root, "requires").map(textOf(_, "requires")).filterNot(Known)
    if (format < 1) damaged(s"it names the format $format")
    if (format > Format) throw new FormatTooNewException(s"format $format")
    if (unknown.nonEmpty) throw new FormatTooNewException(unknown.mkString(", "))
  }

  private def table(node: JsonNode): TableIdentity =
    TableIdentity(text(node, "format"), text(node, "uuid"), text(node, "location"), text(node, "name"))

  private def settings(root: JsonNode): Map[String, String] =
    for ((key, value) <- fields(root, "settings")) yield key -> json.writeValueAsString(value)

  private def block(node: JsonNode, schemas: Schemas): Block = {
    val columns = columnsOf(node, schemas)
    val summary = array(node, "summary").map(withColumns(_, "summary", columns))
    fields(node, "statistics").values.foreach(wholeOf(_, "statistics"))
    Block(
      text(node, "id"),
      computed(node),
      columns,
      objectRef(child(node, "files"), "files"),
      summary,
      optionalList(node, "zones").map(withColumns(_, "zones", columns)))
  }

  private def computed(node: JsonNode): String = {
    val computed = text(node, "computed")
    if (!Computed(computed)) damaged(s"something was computed from $computed")
    computed
  }

  private def withColumns(node: JsonNode, kind: String, columns: IndexedSeq[ColumnEntry]): SummaryRef =
    SummaryRef(objectRef(node, kind), ordinals(array(node, "columns"), kind, columns))

  private def ordinals(nodes: Seq[JsonNode], kind: String, columns: IndexedSeq[ColumnEntry]): Seq[Int] = {
    val ordinals = nodes.map(wholeOf(_, "columns"))
    if (!ordinals.forall(ordinal => ordinal >= 0 && ordinal < columns.size))
      damaged(s"a $kind names a column that is not there")
    ordinals.map(_.toInt)
  }

  /** The columns of a block or snapshot: an index into the manifest's schemas, or the list itself. */
  private def columnsOf(node: JsonNode, schemas: Schemas): IndexedSeq[ColumnEntry] = {
    val value = child(node, "columns")
    if (!value.isIntegralNumber) entries(value)
    else if (value.isInt && schemas.indices.contains(value.asInt)) schemas(value.asInt)
    else damaged(s"it has no schema ${value.asInt}")
  }

  private def entries(value: JsonNode): IndexedSeq[ColumnEntry] = {
    if (!value.isArray) damaged("its columns are not a list")
    elements(value).map(column)
  }

  private def column(node: JsonNode): ColumnEntry = {
    val encoding = nullableText(node, "encoding").map {
      case Encoding.LongValues.name => Encoding.LongValues
      case Encoding.DoubleValues.name => Encoding.DoubleValues
      case Encoding.BinaryValues.name => Encoding.BinaryValues
      case other => damaged(s"it has the encoding $other")
    }
    val path = array(node, "path").map(textOf(_, "path"))
    if (path.isEmpty) damaged("it has a column without a name")
    ColumnEntry(text(node, "key"), path, text(node, "type"), encoding, nullableText(node, "collation"), casts)
  }

  private def snapshot(node: JsonNode, schemas: Schemas): Snapshot = {
    val expressions = optional(node, "expressions").fold(IndexedSeq.empty[ColumnEntry])(entries)
    val columns = columnsOf(node, schemas) ++ expressions
    def single(field: String, kind: String) = optional(node, field).map(objectRef(_, kind))
    nullableText(node, "frequencies_asked")
    Snapshot(
      text(node, "id"),
      text(node, "analyzed_at"),
      computed(node),
      truth(node, "exact"),
      columns,
      long(node, "files"),
      long(node, "files_total"),
      optionalLong(node, "rows"),
      optionalLong(node, "physical_rows"),
      long(node, "size_bytes"),
      optionalLong(node, "live_size_bytes"),
      objectRef(child(node, "table_files"), "table-files"),
      single("summary", "table-summary"),
      single("sketches", "table-sketches"),
      optionalList(node, "frequencies").map(frequencies(_, columns)),
      single("histograms", "table-histograms"),
      optionalList(node, "ranks").map(ranksRef(_, columns)),
      ordinals(optionalList(node, "distribution"), "distribution", columns),
      single("placed", "table-placed"))
  }

  private def frequencies(node: JsonNode, columns: IndexedSeq[ColumnEntry]): SummaryRef = {
    val summary = withColumns(node, "table-frequencies", columns)
    summary.copy(part = optional(node, "part").map(_ => hashPart(node)))
  }

  private def hashPart(node: JsonNode): HashPart = {
    val numbers = array(node, "part").map(wholeOf(_, "part"))
    if (numbers.size != 2 || numbers.head < 0 || numbers.head >= numbers(1) || numbers(1) > Int.MaxValue)
      damaged("lists are a part of nothing")
    HashPart(numbers.head.toInt, numbers(1).toInt)
  }

  private def ranksRef(node: JsonNode, columns: IndexedSeq[ColumnEntry]): RanksRef = {
    val part = withColumns(node, "table-ranks", columns)
    val before = array(node, "before").map(wholeOf(_, "before"))
    if (before.size != part.columns.size || before.exists(_ < 0))
      damaged("ranks do not say what comes before them")
    RanksRef(part.ref, part.columns, before)
  }

  private def objectRef(node: JsonNode, kind: String): ObjectRef = {
    val footer = long(node, "footer_length")
    if (footer > Int.MaxValue || long(node, "rows") < 0) damaged("an object has sizes that none has")
    val ref = ObjectRef(
      text(node, "name"),
      long(node, "length"),
      text(node, "sha256"),
      long(node, "rows"),
      footer.toInt,
      text(node, "footer_sha256"))
    ObjectRef.requireName(ref, kind)
    if (!Digest.matcher(ref.sha256).matches || !Digest.matcher(ref.footerSha256).matches)
      damaged(s"no digest of ${ref.name}")
    ref
  }

  private def optional(node: JsonNode, field: String): Option[JsonNode] =
    if (node.hasNonNull(field)) Some(node.get(field)) else None

  private def child(node: JsonNode, field: String): JsonNode =
    optional(node, field).getOrElse(damaged(s"it has no field $field"))

  private def text(node: JsonNode, field: String): String = textOf(child(node, field), field)

  private def textOf(value: JsonNode, field: String): String = {
    if (!value.isTextual) damaged(s"its field $field is not text")
    value.asText
  }

  private def nullableText(node: JsonNode, field: String): Option[String] =
    optional(node, field).map(textOf(_, field))

  private def truth(node: JsonNode, field: String): Boolean = {
    val value = child(node, field)
    if (!value.isBoolean) damaged(s"its field $field is not true or false")
    value.asBoolean
  }

  private def long(node: JsonNode, field: String): Long = wholeOf(child(node, field), field)

  /** A number that may be null. */
  private def optionalLong(node: JsonNode, field: String): Option[Long] =
    optional(node, field).map(wholeOf(_, field))

  private def wholeOf(value: JsonNode, field: String): Long = {
    if (!value.isIntegralNumber || !value.canConvertToLong) damaged(s"its field $field is not an integer")
    value.asLong
  }

  /** A list that may be absent or null. */
  private def optionalList(node: JsonNode, field: String): IndexedSeq[JsonNode] =
    optional(node, field).fold(IndexedSeq.empty[JsonNode])(_ => array(node, field))

  private def array(node: JsonNode, field: String): IndexedSeq[JsonNode] = {
    val value = child(node, field)
    if (!value.isArray) damaged(s"its field $field is not a list")
    elements(value)
  }

  private def elements(list: JsonNode): IndexedSeq[JsonNode] =
    IndexedSeq.tabulate(list.size)(i => list.get(i))

  /** The fields of an object that may be absent or null. */
  private def fields(node: JsonNode, field: String): Map[String, JsonNode] =
    if (!node.hasNonNull(field)) Map.empty
    else {
      val value = node.get(field)
      if (!value.isObject) damaged(s"its field $field is not an object")
      Indexed.entries(value.fieldNames.asScala.toSeq)(name => name -> value.get(name))
    }
}
