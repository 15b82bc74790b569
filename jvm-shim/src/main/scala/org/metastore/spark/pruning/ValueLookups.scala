package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}
import java.util.stream.IntStream

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.Attempt
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary, FileSetStatistics, NoBounds}
import org.metastore.spark.statistics.objects.Values

/** Looks up single values in files that bounds do not decide, by their lists of values and bloom filters. */
private[pruning] final class ValueLookups(
    statistics: FileSetStatistics,
    evaluation: Evaluation,
    allowance: EvaluationAllowance) {
  import FileSets.{either, without}
  import ValueLookups._

  private var filesEvaluated = 0

  /** The number of files whose values were evaluated by an expression. */
  def evaluations: Int = filesEvaluated

  /** The files of `files` in which no row matches. */
  def noRowMatches(predicate: Condition, files: BitSet): BitSet = predicate match {
    case And(left, right) =>
      val excluded = noRowMatches(left, files)
      either(excluded, noRowMatches(right, without(files, excluded)))
    case Or(left, right) =>
      val (first, second) = if (left.usesValues) (right, left) else (left, right)
      noRowMatches(second, noRowMatches(first, files))
    case evaluated: Evaluated =>
      val excluded = noRowMatches(evaluated.rules, files)
      val undecided = without(without(files, excluded), matchedByBounds(evaluated.rules, files))
      either(excluded, byExpression(evaluated, undecided)(!_.mayHold))
    case member: Member if member.usesValues =>
      val excluded = excludedByBounds(member, files)
      either(excluded, excludedByPoints(member, without(files, excluded)))
    case other =>
      excludedByBounds(other, files)
  }

  /** The files of `files` in which every row matches. */
  def allRowsMatch(predicate: Condition, files: BitSet): BitSet = predicate match {
    case And(left, right) =>
      allRowsMatch(right, allRowsMatch(left, files))
    case Or(left, right) =>
      val matched = allRowsMatch(left, files)
      either(matched, allRowsMatch(right, without(files, matched)))
    case evaluated: Evaluated =>
      val matched = allRowsMatch(evaluated.rules, files)
      val undecided = without(without(files, matched), excludedByBounds(evaluated.rules, files))
      either(matched, byExpression(evaluated, undecided)(_.mustHold))
    case member: Member if member.usesValues =>
      val matched = matchedByBounds(member, files)
      val undecided = without(without(files, matched), excludedByBounds(member, files))
      either(matched, matchedByPoints(member, withoutNulls(member.term.column, undecided)))
    case other =>
      matchedByBounds(other, files)
  }

  /** The files in which no value satisfies a condition on single values. */
  private def excludedByPoints(member: Member, files: BitSet): BitSet = {
    val points = member.set.points.get
    def search(files: BitSet) = byPoints(member.term.column, points, lacks = member.inside, files) {
      isUndecided(_, points, member.inside, _)
    }
    if (points.length <= FewPoints || files.cardinality <= SampleSize * SampleSize) search(files)
    else {
      val sample = sampleOf(files)
      val excluded = search(sample)
      if (excluded.cardinality < sample.cardinality * WorthwhileShare) excluded
      else either(excluded, search(without(files, sample)))
    }
  }

  /** The files in which every value satisfies a condition on single values. */
  private def matchedByPoints(member: Member, files: BitSet): BitSet =
    byPoints(member.term.column, member.set.points.get, lacks = !member.inside, files)((_, _) => true)

  private def excludedByBounds(predicate: Condition, files: BitSet): BitSet =
    evaluateOn(files)(predicate.noRowMatches)

  private def matchedByBounds(predicate: Condition, files: BitSet): BitSet =
    evaluateOn(files)(predicate.allRowsMatch)

  private def withoutNulls(column: ColumnReference, files: BitSet): BitSet =
    evaluateOn(files)(NullTest(column, isNull = false).allRowsMatch)

  private def evaluateOn(files: BitSet)(evaluate: Evaluation => BitSet): BitSet = {
    val selected = files.stream.toArray
    if (selected.isEmpty) files
    else setOf(evaluate(evaluation.among(selected)).stream.map(selected(_)))
  }

  /** The files whose listed values pass a test. If the expression fails, the query reports it. */
  private def byExpression(evaluated: Evaluated, files: BitSet)(test: ListedFile => Boolean): BitSet =
    evaluation.whereKnown(evaluated.column) { summary =>
      val described = files.stream.filter(summary.hasStatistics(_)).toArray
      if (described.isEmpty || allowance.isEmpty) new BitSet
      else setOf(testFiles(evaluated, summary, described, test))
    }

  private def testFiles(
      evaluated: Evaluated,
      summary: ColumnSummary,
      files: Array[Int],
      test: ListedFile => Boolean): IntStream = {
    val column = evaluated.column
    val trial = new ValueTrial(new ValuePredicate(evaluated.condition, evaluated.leaf), column, allowance)
    val limit = allowance.worthReading
    val values = statistics.values(column.key, column.dataType, files, filters = false, limit)
    def listed(file: Int): Option[Values] =
      if (summary.isAllNull(file)) Some(Values.none) else values.listed(file)
    def passes(file: Int, list: Values): Boolean = {
      filesEvaluated += 1
      Attempt.orNone(test(new ListedFile(summary, file, trial, list))).contains(true)
    }
    inTime(files).filter(file => listed(file).exists(passes(file, _)))
  }

  /** The undecided files in which none of the values is one of the points (`lacks`), or all of them are. */
  private def byPoints(column: ColumnReference, points: Values, lacks: Boolean, files: BitSet)(
      isUndecided: (Bounds, Int) => Boolean): BitSet =
    evaluation.whereKnown(column) { summary =>
      val read = files.stream.filter(i => summary.hasStatistics(i) && isUndecided(summary.bounds, i)).toArray
      if (read.isEmpty) new BitSet
      else {
        val values = statistics.values(column.key, column.dataType, read, filters = lacks)
        val decides = if (lacks) values.lack(points) else values.within(points)
        setOf(inTime(read).filter(decides(_)))
      }
    }

  /** Checks the time before each file: one may need look-ups of many values. */
  private def inTime(files: Array[Int]): IntStream = Arrays.stream(files).peek(_ => allowance.requireTime())
}

/** A file with a list of all its values, and a condition to evaluate on them. */
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

  // A set of many points often has a value of every file: a sample shows whether lists are worth reading.
  private val FewPoints = 1000
  private val SampleSize = 16
  private val WorthwhileShare = 0.3

  /** Some of the files, evenly chosen. */
  private def sampleOf(files: BitSet): BitSet = {
    val numbers = files.stream.toArray
    setOf(Arrays.stream(Array.tabulate(SampleSize)(i => numbers(i * numbers.length / SampleSize))))
  }

  /** False if an exact bound, which is a value of the file, already decides the file. */
  private def isUndecided(bounds: Bounds, points: Values, inside: Boolean, i: Int): Boolean =
    if (bounds == NoBounds) false
    else if (bounds.loExact(i) && bounds.los.isIn(points, i) == inside) false
    else !(bounds.hiExact(i) && bounds.his.isIn(points, i) == inside)

  private def setOf(files: IntStream): BitSet = {
    val set = new BitSet
    files.forEach(set.set(_))
    set
  }
}
