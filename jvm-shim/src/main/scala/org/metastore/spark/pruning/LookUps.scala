package org.metastore.spark.pruning

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.store.{Bounds, BytesBounds, ColumnSummary, FileSetStatistics, LongBounds, Points}

/**
 * What bounds leave open, lists of all values and bloom filters may decide: whether a file holds one of some single values,
 * and whether it holds only these. They are read for the files alone that nothing else decides.
 */
private[pruning] final class ValueLookups(files: FileSetStatistics, bounds: Evaluation) {
  import ValueLookups._

  /** Those of some files of which it is proven that no row makes the predicate true. */
  def noRowMatches(predicate: Condition, among: Array[Int]): Array[Int] = predicate match {
    case And(left, right) =>
      val proven = noRowMatches(left, among)
      proven ++ noRowMatches(right, less(among, proven))
    case Or(left, right) =>
      val (first, second) = if (hasPoints(left)) (right, left) else (left, right)
      noRowMatches(second, noRowMatches(first, among))
    case Member(term, set, inside) if hasPoints(predicate) =>
      val proven = excludeByBounds(predicate, among)
      bounds.zonesOf(term.column).fold(_ => proven, { zones =>
        proven ++ excludeByValues(term.column, zones, set.points.get, inside, less(among, proven))
      })
    case other => excludeByBounds(other, among)
  }

  private def excludeByBounds(predicate: Condition, among: Array[Int]): Array[Int] =
    if (among.isEmpty) among else Evaluation.select(among, bounds.among(among).noRowMatches(predicate))

  private def excludeByValues(use: ColumnReference, zones: ColumnSummary, points: Points, inside: Boolean, among: Array[Int]): Array[Int] = {
    val open = among.filter(i => zones.hasStatistics(i) && isOpen(zones.bounds, points, inside, i))
    if (open.isEmpty) open
    else {
      val values = files.values(use.key, use.dataType, open, filters = inside)
      open.filter(if (inside) values.lack(points) else values.within(points))
    }
  }
}

private[pruning] object ValueLookups {

  /** Whether single values decide some part of it. */
  def hasPoints(predicate: Condition): Boolean = predicate match {
    case And(left, right) => hasPoints(left) || hasPoints(right)
    case Or(left, right) => hasPoints(left) || hasPoints(right)
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

  private def less(files: Array[Int], proven: Array[Int]): Array[Int] =
    if (proven.isEmpty) files
    else {
      val done = proven.toSet
      files.filterNot(done)
    }
}
