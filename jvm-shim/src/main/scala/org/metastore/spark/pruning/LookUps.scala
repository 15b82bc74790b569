package org.metastore.spark.pruning

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.store.{Bounds, BytesBounds, ColumnZones, FileStatistics, LongBounds, Points}

/**
 * What bounds leave open, lists of all values and bloom filters may decide: whether a file holds one of some single values,
 * and whether it holds only these. They are read for the files alone that nothing else decides.
 */
private[pruning] final class LookUps(files: FileStatistics, bounds: Evaluation) {
  import LookUps._

  /** For each of some files, whether it is proven that no row makes the predicate true; false for all others. */
  def noRowMatches(predicate: Condition, among: Array[Boolean]): Array[Boolean] = predicate match {
    case And(left, right) =>
      val proven = noRowMatches(left, among)
      either(proven, noRowMatches(right, less(among, proven)))
    case Or(left, right) =>
      val (first, second) = if (asks(left)) (right, left) else (left, right)
      noRowMatches(second, noRowMatches(first, among))
    case Member(term, set, inside) if asks(predicate) =>
      val proven = both(bounds.noRowMatches(predicate), among)
      bounds.zonesOf(term.column).fold(_ => proven, { zones =>
        either(proven, lookedUp(term.column, zones, set.points.get, inside, less(among, proven)))
      })
    case other => both(bounds.noRowMatches(other), among)
  }

  private def lookedUp(
      use: ColumnUse, zones: ColumnZones, points: Points, inside: Boolean, among: Array[Boolean]): Array[Boolean] = {
    val open = filtered(among)(i => zones.known(i) && isOpen(zones.bounds, points, inside, i))
    if (!open.contains(true)) open
    else {
      val values = files.values(use.key, use.dataType, open, filters = inside)
      filtered(open)(if (inside) values.lack(points) else values.within(points))
    }
  }
}

private[pruning] object LookUps {

  /** Whether single values decide some part of it. */
  def asks(predicate: Condition): Boolean = predicate match {
    case And(left, right) => asks(left) || asks(right)
    case Or(left, right) => asks(left) || asks(right)
    case Member(term, set, _) => term.isColumn && set.points.isDefined
    case _ => false
  }

  /** An exact bound is a value of the file: where it is one that is asked for, or one that is not, all is said already. */
  private def isOpen(bounds: Bounds, points: Points, inside: Boolean, i: Int): Boolean = (bounds, points) match {
    case (b: LongBounds, asked: Points.Longs) =>
      !(b.loExact(i) && asked.has(b.lo(i)) == inside) && !(b.hiExact(i) && asked.has(b.hi(i)) == inside)
    case (b: BytesBounds, asked: Points.Bytes) =>
      !(b.loExact(i) && b.hasLo(i) && asked.has(b.lo(i)) == inside) && !(b.hiExact(i) && b.hasHi(i) && asked.has(b.hi(i)) == inside)
    case _ => false
  }

  private def filtered(among: Array[Boolean])(test: Int => Boolean): Array[Boolean] = {
    val out = new Array[Boolean](among.length)
    var i = 0
    while (i < out.length) {
      out(i) = among(i) && test(i)
      i += 1
    }
    out
  }

  private def both(a: Array[Boolean], b: Array[Boolean]): Array[Boolean] = filtered(a)(b(_))

  private def less(a: Array[Boolean], b: Array[Boolean]): Array[Boolean] = filtered(a)(!b(_))

  private def either(a: Array[Boolean], b: Array[Boolean]): Array[Boolean] = Array.tabulate(a.length)(i => a(i) || b(i))
}
