package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}
import java.util.stream.IntStream

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.Attempt
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary, FileSetStatistics, NoBounds}
import org.metastore.spark.statistics.objects.Values

/** Asks single values where bounds leave it open: lists of all values and bloom filters are read for these files alone. */
private[pruning] final class ValueLookups(
    files: FileSetStatistics,
    bounds: Evaluation,
    allowance: EvaluationAllowance) {
  import FileSets.{either, without}
  import ValueLookups._

  private var filesEvaluated = 0

  /** Of how many files all values were put through an expression. */
  def evaluations: Int = filesEvaluated

  /** Those of some files of which it is proven that no row makes the predicate true. */
  def noRowMatches(predicate: Condition, among: BitSet): BitSet = predicate match {
    case And(left, right) =>
      val proven = noRowMatches(left, among)
      either(proven, noRowMatches(right, without(among, proven)))
    case Or(left, right) =>
      val (first, second) = if (left.asksForValues) (right, left) else (left, right)
      noRowMatches(second, noRowMatches(first, among))
    case evaluated: Evaluated =>
      val proven = noRowMatches(evaluated.rules, among)
      val open = without(without(among, proven), matchedByBounds(evaluated.rules, among))
      either(proven, byExpression(evaluated, open)(!_.mayHold))
    case member: Member if member.asksForValues =>
      val proven = excludedByBounds(member, among)
      either(proven, withoutPoints(member, without(among, proven)))
    case other =>
      excludedByBounds(other, among)
  }

  /** Those of some files of which it is proven that the predicate is true of every row. */
  def allRowsMatch(predicate: Condition, among: BitSet): BitSet = predicate match {
    case And(left, right) =>
      allRowsMatch(right, allRowsMatch(left, among))
    case Or(left, right) =>
      val proven = allRowsMatch(left, among)
      either(proven, allRowsMatch(right, without(among, proven)))
    case evaluated: Evaluated =>
      val proven = allRowsMatch(evaluated.rules, among)
      val open = without(without(among, proven), excludedByBounds(evaluated.rules, among))
      either(proven, byExpression(evaluated, open)(_.mustHold))
    case member: Member if member.asksForValues =>
      val proven = matchedByBounds(member, among)
      val open = without(without(among, proven), excludedByBounds(member, among))
      either(proven, ofPointsAlone(member, withoutNulls(member.term.column, open)))
    case other =>
      matchedByBounds(other, among)
  }

  /** Files none of whose values satisfies a condition on single values. */
  private def withoutPoints(member: Member, among: BitSet): BitSet = {
    val points = member.set.points.get
    def search(files: BitSet) = byPoints(member.term.column, points, lacks = member.inside, files) {
      isOpen(_, points, member.inside, _)
    }
    if (points.length <= FewPoints || among.cardinality <= SampleSize * SampleSize) search(among)
    else {
      val sample = sampleOf(among)
      val found = search(sample)
      if (found.cardinality < sample.cardinality * WorthwhileShare) found
      else either(found, search(without(among, sample)))
    }
  }

  /** Files all of whose values satisfy a condition on single values. */
  private def ofPointsAlone(member: Member, among: BitSet): BitSet =
    byPoints(member.term.column, member.set.points.get, lacks = !member.inside, among)((_, _) => true)

  private def excludedByBounds(predicate: Condition, among: BitSet): BitSet =
    evaluateAmong(among)(predicate.noRowMatches)

  private def matchedByBounds(predicate: Condition, among: BitSet): BitSet =
    evaluateAmong(among)(predicate.allRowsMatch)

  private def withoutNulls(use: ColumnReference, among: BitSet): BitSet =
    evaluateAmong(among)(NullTest(use, isNull = false).allRowsMatch)

  private def evaluateAmong(among: BitSet)(ask: Evaluation => BitSet): BitSet = {
    val places = among.stream.toArray
    if (places.isEmpty) among
    else setOf(ask(bounds.among(places)).stream.map(places(_)))
  }

  /** Files all of whose values are listed, and the expression proves it of them; an error of it is the query's to raise. */
  private def byExpression(evaluated: Evaluated, among: BitSet)(proves: ListedFile => Boolean): BitSet =
    bounds.whereKnown(evaluated.column) { summary =>
      val open = among.stream.filter(summary.hasStatistics(_)).toArray
      if (open.isEmpty || allowance.isEmpty) new BitSet
      else setOf(proven(evaluated, summary, open, proves))
    }

  private def proven(
      evaluated: Evaluated,
      summary: ColumnSummary,
      open: Array[Int],
      proves: ListedFile => Boolean): IntStream = {
    val use = evaluated.column
    val trial = new ValueTrial(new ValuePredicate(evaluated.condition, evaluated.leaf), use, allowance)
    val values = files.values(use.key, use.dataType, open, filters = false, allowance.worthReading)
    def listed(file: Int): Option[Values] =
      if (summary.isAllNull(file)) Some(Values.none) else values.listed(file)
    def isProven(file: Int, list: Values): Boolean = {
      filesEvaluated += 1
      Attempt.orNone(proves(new ListedFile(summary, file, trial, list))).contains(true)
    }
    inTime(open).filter(file => listed(file).exists(isProven(file, _)))
  }

  /** Files none of whose values is one of the points (`lacks`), or all are. */
  private def byPoints(use: ColumnReference, points: Values, lacks: Boolean, among: BitSet)(
      isOpen: (Bounds, Int) => Boolean): BitSet =
    bounds.whereKnown(use) { summary =>
      val open = among.stream.filter(i => summary.hasStatistics(i) && isOpen(summary.bounds, i)).toArray
      if (open.isEmpty) new BitSet
      else {
        val values = files.values(use.key, use.dataType, open, filters = lacks)
        val decides = if (lacks) values.lack(points) else values.within(points)
        setOf(inTime(open).filter(decides(_)))
      }
    }

  /** Files one after the other: each may have to be asked for many values. */
  private def inTime(files: Array[Int]): IntStream = Arrays.stream(files).peek(_ => allowance.requireTime())
}

/** A file all of whose values are listed, and a condition that is put to them. */
private final class ListedFile(summary: ColumnSummary, file: Int, trial: ValueTrial, values: Values) {

  /** Whether the condition may be true of a row. */
  def mayHold: Boolean =
    if (mayHaveNull && trial.holdsForNull) true
    else if (mayHaveNaN && trial.holdsForNaN) true
    else trial.holdsForSome(values)

  /** Whether the condition is true of every row. */
  def mustHold: Boolean =
    if (mayHaveNull && !trial.holdsForNull) false
    else if (mayHaveNaN && !trial.holdsForNaN) false
    else trial.holdsForAll(values)

  private def mayHaveNull: Boolean = summary.nulls(file) != 0

  private def mayHaveNaN: Boolean = summary.mayHaveNaN(file)
}

private[pruning] object ValueLookups {

  // Many values are often in most files: then their lists are not worth reading. Some files tell.
  private val FewPoints = 1000
  private val SampleSize = 16
  private val WorthwhileShare = 0.3

  /** Some files, from all places among others. */
  private def sampleOf(files: BitSet): BitSet = {
    val places = files.stream.toArray
    setOf(Arrays.stream(Array.tabulate(SampleSize)(i => places(i * places.length / SampleSize))))
  }

  /** An exact bound is a value of the file: where it is one that is asked for, or one that is not, all is said already. */
  private def isOpen(bounds: Bounds, points: Values, inside: Boolean, i: Int): Boolean =
    if (bounds == NoBounds) false
    else if (bounds.loExact(i) && bounds.los.isIn(points, i) == inside) false
    else !(bounds.hiExact(i) && bounds.his.isIn(points, i) == inside)

  private def setOf(files: IntStream): BitSet = {
    val set = new BitSet
    files.forEach(set.set(_))
    set
  }
}
