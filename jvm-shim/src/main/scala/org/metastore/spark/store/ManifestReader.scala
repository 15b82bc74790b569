package org.metastore.spark.store

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.regex.Pattern

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** Reads a manifest's bytes: checksum first, then the JSON, every field checked before it is used. */
private[store] object ManifestReader {
  val MaxBytes: Int = 16 << 20 // writers aim at 1 MB, which very wide schemas pass
  private val Format = 1
  private val MaxBlocks = 1024 // writers keep 64, more where blocks cannot share a list of columns
  private val Known = Set.empty[String] // entries of `requires` that this reader understands
  private val ObjectName =
    Pattern.compile("[a-z]+(?:-[a-z]+)?-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\\.parquet")
  private val Sha256 = Pattern.compile("[0-9a-f]{64}")
  private val Casting = Set("hudi") // formats whose readers cast a float to a double through its text
  private val json = new ObjectMapper()

  /**
   * @param name of the file, for messages
   * @throws DamagedObjectException if the bytes are not a manifest
   * @throws FormatTooNewException  if a later version wrote them
   */
  def read(name: String, bytes: Array[Byte]): Manifest = new ManifestReader(name).read(bytes)

  /** Refuses names that could form a path or that are of another kind, and sizes that no object has. */
  def refuseName(ref: ObjectRef, kind: String): Unit = {
    if (!ObjectName.matcher(ref.name).matches || ref.kind != kind)
      throw new DamagedObjectException(ref.name, s"its name is not that of a $kind object")
    ObjectReader.refuseSizes(ref)
  }

  def hex(bytes: Array[Byte]): String = {
    val digits = new Array[Char](bytes.length * 2)
    for (i <- bytes.indices) {
      digits(2 * i) = Character.forDigit((bytes(i) >> 4) & 0xf, 16)
      digits(2 * i + 1) = Character.forDigit(bytes(i) & 0xf, 16)
    }
    new String(digits)
  }

  def sha256(bytes: Array[Byte], offset: Int, length: Int): Array[Byte] = {
    val digest = MessageDigest.getInstance("SHA-256")
    digest.update(bytes, offset, length)
    digest.digest()
  }
}

private final class ManifestReader(name: String) {
  import ManifestReader._

  private var casts = false

  private type Schemas = IndexedSeq[IndexedSeq[ColumnEntry]]

  private def damaged(what: String): Nothing = throw new DamagedObjectException(name, what)

  private def read(bytes: Array[Byte]): Manifest = {
    val (line, fingerprint) = checkedLine(bytes)
    val root =
      try json.readTree(bytes, 0, line)
      catch { case e: JsonProcessingException => throw new DamagedObjectException(name, "it is not JSON", e) }
    if (root == null || !root.isObject) damaged("it is not a JSON object")
    refuseNewer(root)
    val identity = table(child(root, "table"))
    casts = Casting(identity.format)
    val schemas = optional(root, "schemas").map(_ => array(root, "schemas").map(entries)).getOrElse(IndexedSeq.empty)
    val blocks = array(root, "blocks").map(block(_, schemas))
    if (blocks.size > MaxBlocks) damaged(s"it has ${blocks.size} blocks")
    Manifest(
      long(root, "sequence"), text(root, "commit"), text(root, "written_at"), text(root, "writer"), identity,
      settings(root.get("settings")), blocks, array(root, "snapshots").map(snapshot(_, schemas)), fingerprint)
  }

  /** Verifies the second line and returns the length of the first, line feed included, and its digest. */
  private def checkedLine(bytes: Array[Byte]): (Int, String) = {
    if (bytes.length > MaxBytes) damaged(s"it has ${bytes.length} bytes")
    var line = 0
    while (line < bytes.length && bytes(line) != '\n') line += 1
    line = if (line < bytes.length) line + 1 else 0
    val checksum = new String(bytes, line, bytes.length - line, UTF_8)
    val digest = hex(sha256(bytes, 0, line))
    if (line == 0 || checksum != s"sha256:$digest\n") damaged("its checksum does not agree")
    (line, digest)
  }

  private def refuseNewer(root: JsonNode): Unit = {
    val format = long(root, "format")
    if (format > Format) throw new FormatTooNewException(s"format $format")
    val unknown = array(root, "requires").map(_.asText).filterNot(Known)
    if (unknown.nonEmpty) throw new FormatTooNewException(unknown.mkString(", "))
  }

  private def table(node: JsonNode): TableIdentity =
    TableIdentity(text(node, "format"), text(node, "uuid"), text(node, "location"), text(node, "name"))

  private def settings(node: JsonNode): Map[String, String] =
    if (node == null) Map.empty
    else names(node).map(key => key -> json.writeValueAsString(node.get(key))).toMap

  private def block(node: JsonNode, schemas: Schemas): Block = {
    val columns = columnsOf(node, schemas)
    val summary = array(node, "summary").map(withColumns(_, "summary", columns))
    val zones = optional(node, "zones").fold(IndexedSeq.empty[JsonNode])(_ => array(node, "zones"))
    Block(
      text(node, "id"), text(node, "computed"), columns, objectRef(child(node, "files"), "files"), summary,
      zones.map(withColumns(_, "zones", columns)))
  }

  private def withColumns(node: JsonNode, kind: String, columns: IndexedSeq[ColumnEntry]): SummaryRef = {
    val ordinals = array(node, "columns").map(_.asInt(-1))
    if (!ordinals.forall(columns.indices.contains)) damaged(s"a $kind names a column that is not there")
    SummaryRef(objectRef(node, kind), ordinals)
  }

  /** The columns of a block or snapshot: an index into the manifest's schemas, or the list itself. */
  private def columnsOf(node: JsonNode, schemas: Schemas): IndexedSeq[ColumnEntry] = {
    val value = child(node, "columns")
    if (!value.isInt) entries(value)
    else if (schemas.indices.contains(value.asInt)) schemas(value.asInt)
    else damaged(s"it has no schema ${value.asInt}")
  }

  private def entries(value: JsonNode): IndexedSeq[ColumnEntry] = {
    if (!value.isArray) damaged("its columns are not a list")
    (0 until value.size).map(i => column(value.get(i)))
  }

  private def column(node: JsonNode): ColumnEntry = {
    val encoding = optional(node, "encoding").map(_.asText).map {
      case Encoding.LongValues.name => Encoding.LongValues
      case Encoding.DoubleValues.name => Encoding.DoubleValues
      case Encoding.BinaryValues.name => Encoding.BinaryValues
      case other => damaged(s"it has the encoding $other")
    }
    ColumnEntry(
      text(node, "key"), array(node, "path").map(_.asText), text(node, "type"), encoding,
      optional(node, "collation").map(_.asText), casts)
  }

  private def snapshot(node: JsonNode, schemas: Schemas): Snapshot = {
    val columns = columnsOf(node, schemas)
    val lists = optional(node, "frequencies").fold(IndexedSeq.empty[JsonNode])(_ => array(node, "frequencies"))
    val ranks = optional(node, "ranks").fold(IndexedSeq.empty[JsonNode])(_ => array(node, "ranks"))
    val places = optional(node, "distribution").fold(IndexedSeq.empty[Int])(_ => array(node, "distribution").map(_.asInt(-1)))
    if (!places.forall(columns.indices.contains)) damaged("a distribution names a column that is not there")
    snapshot(node, columns, lists.map(list => withColumns(list, "table-frequencies", columns).copy(part = part(list)))).copy(
      ranks = ranks.map(ranksRef(_, columns)), distribution = places,
      placed = optional(node, "placed").map(objectRef(_, "table-placed")))
  }

  private def part(node: JsonNode): Option[HashPart] = optional(node, "part").map { _ =>
    val numbers = array(node, "part").map(_.asInt(-1))
    if (numbers.size != 2 || numbers.head < 0 || numbers.head >= numbers(1)) damaged("lists are a part of nothing")
    HashPart(numbers.head, numbers(1))
  }

  private def ranksRef(node: JsonNode, columns: IndexedSeq[ColumnEntry]): RanksRef = {
    val part = withColumns(node, "table-ranks", columns)
    val before = array(node, "before").map(_.asLong(-1))
    if (before.size != part.columns.size || before.exists(_ < 0)) damaged("ranks do not say what comes before them")
    RanksRef(part.ref, part.columns, before)
  }

  private def snapshot(node: JsonNode, columns: IndexedSeq[ColumnEntry], lists: Seq[SummaryRef]): Snapshot = Snapshot(
    text(node, "id"), text(node, "analyzed_at"), text(node, "computed"), child(node, "exact").asBoolean(false),
    columns, long(node, "files"), long(node, "files_total"), long(node, "rows"),
    long(node, "physical_rows"), long(node, "size_bytes"), long(node, "live_size_bytes"),
    objectRef(child(node, "table_files"), "table-files"), optional(node, "summary").map(objectRef(_, "table-summary")),
    optional(node, "sketches").map(objectRef(_, "table-sketches")), lists,
    optional(node, "histograms").map(objectRef(_, "table-histograms")))

  private def objectRef(node: JsonNode, kind: String): ObjectRef = {
    val ref = ObjectRef(
      text(node, "name"), long(node, "length"), text(node, "sha256"), long(node, "rows"), long(node, "footer_length").toInt,
      text(node, "footer_sha256"))
    refuseName(ref, kind)
    if (!Sha256.matcher(ref.sha256).matches || !Sha256.matcher(ref.footerSha256).matches) damaged(s"no digest of ${ref.name}")
    ref
  }

  private def optional(node: JsonNode, field: String): Option[JsonNode] = Option(node.get(field)).filterNot(_.isNull)

  private def child(node: JsonNode, field: String): JsonNode =
    optional(node, field).getOrElse(damaged(s"it has no field $field"))

  private def text(node: JsonNode, field: String): String = {
    val value = child(node, field)
    if (!value.isTextual) damaged(s"its field $field is not text")
    value.asText
  }

  /** An integer that may be null in older statistics: -1 is unknown. */
  private def long(node: JsonNode, field: String): Long = node.get(field) match {
    case null => damaged(s"it has no field $field")
    case value if value.isNull => -1
    case value if value.canConvertToLong => value.asLong
    case _ => damaged(s"its field $field is not an integer")
  }

  private def array(node: JsonNode, field: String): IndexedSeq[JsonNode] = {
    val value = child(node, field)
    if (!value.isArray) damaged(s"its field $field is not a list")
    (0 until value.size).map(i => value.get(i))
  }

  private def names(node: JsonNode): Seq[String] = {
    val all = Seq.newBuilder[String]
    val fields = node.fieldNames()
    while (fields.hasNext) all += fields.next()
    all.result()
  }
}
