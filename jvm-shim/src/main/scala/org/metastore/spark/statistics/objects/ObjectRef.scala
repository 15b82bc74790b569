package org.metastore.spark.statistics.objects

import java.util.regex.Pattern

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.DamagedObjectException

/**
 * An immutable object of the store, as a manifest names it. It is trusted only when length and digest agree.
 */
final case class ObjectRef(
    name: String,
    length: Long,
    sha256: String,
    rows: Long,
    footerLength: Int,
    footerSha256: String) {

  /** The part of the name before the uuid: `files`, `summary`, `table-summary`, ... */
  def kind: String = ObjectRef.kindOf(name)
}

object ObjectRef {
  private val MaxFooter = Contract.limit("footer_bytes")
  private val MaxLength = Contract.limit("object_length")
  private val MaxRows = Contract.limit("object_rows")
  private val ObjectName =
    Pattern.compile(
      "[a-z]+(?:-[a-z]+)*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\\.parquet")
  private val TailLength = "-00000000-0000-0000-0000-000000000000.parquet".length

  /** The number of rows in a reference that does not have it. */
  val AnyRows: Long = -1

  /** The kind of object in a name. */
  private[statistics] def kindOf(name: String): String = name.dropRight(TailLength)

  /** Refuses names that could form a path or that are of another kind, and sizes that no object has. */
  def requireName(ref: ObjectRef, kind: String): Unit = {
    if (!ObjectName.matcher(ref.name).matches || ref.kind != kind)
      throw new DamagedObjectException(ref.name, s"its name is not that of a $kind object")
    requireSizes(ref)
  }

  /** Refuses sizes that no object has, before anything is allocated. */
  private def requireSizes(ref: ObjectRef): Unit = {
    val possible =
      ref.length > 12 && ref.length <= MaxLength && ref.footerLength > 8 && ref.footerLength < ref.length &&
        ref.footerLength <= MaxFooter && ref.rows >= ObjectRef.AnyRows && ref.rows <= MaxRows
    if (!possible) throw new DamagedObjectException(ref.name, "its sizes in the manifest are impossible")
  }
}

/** An object and the columns that it holds. */
final case class SummaryRef(ref: ObjectRef, columns: Seq[Int], part: Option[HashPart] = None)

/** Range `index`, from 0, of `count` equal ranges of all hashes. */
final case class HashPart(index: Int, count: Int) {
  def has(hash: Long): Boolean = (hash >>> 32) * count >>> 32 == index
}

/** A part of the exact ranks of some columns of a snapshot. */
final case class RanksRef(ref: ObjectRef, columns: Seq[Int], before: Seq[Long]) {
  def valuesBefore(column: Int): Long = before(columns.indexOf(column))
}
