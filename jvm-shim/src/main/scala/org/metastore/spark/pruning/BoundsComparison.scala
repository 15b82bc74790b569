package org.metastore.spark.pruning

import org.metastore.spark.statistics.columns.Bounds

/** Compares the bounds of two terms of a row, by file. */
private[pruning] final class BoundsComparison(left: Bounds, right: Bounds) {
  import BoundsComparison.Unknown

  private val (leftLo, leftHi) = (left.los, left.his)
  private val (rightLo, rightHi) = (right.los, right.his)

  def isBelow(i: Int): Boolean = compareLeftHiToRightLo(i) < 0
  def isNotAbove(i: Int): Boolean = compareLeftHiToRightLo(i) <= 0
  def isAbove(i: Int): Boolean = compareRightHiToLeftLo(i) < 0
  def isNotBelow(i: Int): Boolean = compareRightHiToLeftLo(i) <= 0

  /** The order of the greatest left value and the least right one. */
  private def compareLeftHiToRightLo(i: Int): Int =
    if (left.hasHi(i) && right.hasLo(i)) leftHi.compare(i, rightLo, i)
    else Unknown

  /** The order of the greatest right value and the least left one. */
  private def compareRightHiToLeftLo(i: Int): Int =
    if (right.hasHi(i) && left.hasLo(i)) rightHi.compare(i, leftLo, i)
    else Unknown

  def isApart(i: Int): Boolean = isBelow(i) || isAbove(i)

  /** Whether both are the same single value. */
  def isSame(i: Int): Boolean = {
    val areExact = left.areExact(i) && right.areExact(i)
    areExact && isNotAbove(i) && isNotBelow(i)
  }
}

private object BoundsComparison {
  private val Unknown = 1 // an order that proves nothing
}
