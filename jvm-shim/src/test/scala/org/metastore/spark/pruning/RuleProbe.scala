package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.{
  Ascending, Descending, Expression, NullsFirst, NullsLast, SortOrder
}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression

import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.pruning.PreparedFilters.{bits, files, orError}

/**
 * Asks the rules that choose files by more than a filter, without a query. Questions are fields behind tabs, and answers are lines;
 * sets of files are texts with a `1` for each file that is in them.
 */
final class RuleProbe(probe: PruningProbe) {
  private val expressions = scala.collection.mutable.Map.empty[String, Expression]
  private val length = probe.paths.length
  private val Grouping = "GROUP BY "

  /**
   * `limit column ascending nullsFirst candidates full`: the files that hold none of the first rows, and why.
   */
  def first(questions: Array[String]): String =
    answers(questions) { case Array(limit, column, ascending, nullsFirst, candidates, full) =>
      val direction = if (ascending.toBoolean) Ascending else Descending
      val nulls = if (nullsFirst.toBoolean) NullsFirst else NullsLast
      RowOrder.fromSort(
        SortOrder(expression(column), direction, nulls, Nil),
        probe.resolver).fold("no order") {
        order =>
          val wanted = WantedRows.parse(WantedRows(limit.toLong, Some(order)).text)
          limitedTo(LimitedFiles.by(
            wanted,
            probe.statistics,
            files(candidates),
            files(candidates),
            files(full),
            _ => DeletedRows.Zero))
      }
    }

  /** `limit survivors full`: the files that a LIMIT leaves unread, and why. */
  def limited(questions: Array[String]): String = answers(questions) { case Array(limit, survivors, full) =>
    val wanted = WantedRows.parse(WantedRows(limit.toLong).text)
    limitedTo(LimitedFiles.by(
      wanted,
      probe.statistics,
      files(survivors),
      files(survivors),
      files(full),
      _ => DeletedRows.Zero))
  }

  private def limitedTo(found: Option[LimitedFiles]): String = found.fold("none") { limited =>
    s"${bits(limited.dropped, length)} ${limited.label}: ${limited.reason(limited.dropped.nextSetBit(0)).sentence}"
  }

  /**
   * `function files others`: the files of which the function is known, it of all these, and its parts where others are read.
   * `GROUP BY column` stands for the number of rows with each value.
   */
  def measured(questions: Array[String]): String = answers(questions) { case Array(function, among, others) =>
    measureOf(function).fold("none") { measure =>
      val found = measure.compute(probe.statistics, files(among), _ => DeletedRows.Zero)
      val known = FileSets.both(files(among), FileSets.where(length)(found.isKnown))
      val rows = files(others).stream.toArray.map(file => file -> probe.statistics.rows(file)).toMap
      s"${bits(known, length)} ${shown(found.total(known))} ${shown(found.parts(known, rows))}"
    }
  }

  private def measureOf(function: String): Option[FileMeasure] =
    if (function.startsWith(Grouping))
      FileMeasures.fromGrouping(expression(function.drop(Grouping.length)), probe.resolver)
    else {
      val aggregate = expression(function).collectFirst { case found: AggregateExpression => found }.get
      FileMeasures.fromFunction(aggregate, probe.resolver)
    }

  private def shown(value: Any): String = value match {
    case None => "none"
    case Some(one) => shown(one)
    case several: Seq[_] => several.map(shown).mkString("|")
    case DifferentValues(values) => s"${values.length}:${shown(values)}"
    case (group, rows) => s"${shown(group)}=$rows"
    case bytes: Array[Byte] => bytes.mkString(",")
    case one => String.valueOf(one).replaceAll("[\\s|=]", "_")
  }

  /** A column: how its values are spread over the files, and some of these. */
  def layout(columns: Array[String]): String = answers(columns) { case Array(column) =>
    val use = new ColumnLookup(probe.resolver).find(expression(column)).toOption.get
    probe.statistics.column(use.key, use.dataType).fold(
      _.sentence,
      { summary =>
        val samples = Seq(1, 2, 7, length + 1).map(ColumnLayout.sample(summary, _).mkString(","))
        (ColumnLayout.fromSummary(summary).toString +: samples).mkString(" ")
      })
  }

  /** `kept contradictory changed limited answered`, each a set of files or `-`: all that a decision about a scan tells. */
  def decided(questions: Array[String]): String =
    answers(questions) { case Array(kept, contradictory, changed, limited, answered) =>
      def optional(set: String) = if (set == "-") None else Some(files(set))
      val verdicts = optional(kept).toRight(Reason(ReasonCode.NoFilter)).map { read =>
        ScanDecision.Verdict(new GivenVerdicts(length, read), IndexedSeq("a", "b"))
      }
      val some = optional(limited).map(_ =>
        LimitedFiles.choose(1, FileSets.all(length), FileSets.all(length), _ => 1L, probe.paths(_)).get)
      val beyond = Seq("elsewhere" -> Some(3L), probe.paths(0) -> Some(1L))
      val counted = Some(if (contradictory.startsWith("1")) length - 2L else length + 2L)
      val live =
        new LiveFiles("format", counted, () => beyond, Seq(Reason(ReasonCode.Subquery, "expression" -> "c")))
      def estimate = if (changed.startsWith("1")) throw new IllegalStateException
      else Some(ScanEstimate(5, "x", isExact = true))
      val decision = new ScanDecision(
        "t",
        probe.statistics.files,
        probe.statistics.rows,
        verdicts,
        files(contradictory),
        "v",
        files(changed),
        if (kept.endsWith("1")) live else LiveFiles.Unknown,
        () => estimate,
        some,
        optional(answered),
        full = files(changed))
      val left = Seq(ReasonCode.NoFilter, ReasonCode.Failed, ReasonCode.AnsweredByFormat).map(Reason(_))
      val same =
        Seq(decision, decision.withEstimate(ScanEstimate(7, "y", isExact = false))) ++ decision.beforeJoin ++
          left.flatMap(why => Seq(decision.withoutPruning(why), ScanDecision.withoutPruning("t", why)))
      same.map(told).mkString(" # ")
    }

  private def told(decision: ScanDecision): String = Seq(
    bits(decision.survivors, length),
    bits(decision.excludable, length),
    decision.pathsSkipped,
    decision.rowEstimate,
    decision.before,
    decision.after,
    decision.skippedByFormat,
    decision.total,
    decision.bytesSkipped,
    decision.unread,
    decision.fingerprint,
    decision.label,
    decision.unusedStatistics.map(_.sentence),
    decision.perFile(1),
    bits(decision.full, length),
    decision.isAnswered).mkString(" ; ")

  private def expression(text: String): Expression =
    expressions.getOrElseUpdate(text, probe.filters.expression(text))

  private def answers(questions: Array[String])(ask: PartialFunction[Array[String], String]): String =
    questions.map(orError[String](question => ask(question.split("\t")))(_)).mkString("\n")
}

/** Verdicts that are given; conjuncts take turns in excluding files. */
private final class GivenVerdicts(override val length: Int, kept: BitSet) extends Verdicts {
  override def isKept(file: Int): Boolean = kept.get(file)
  override def keptCount: Int = kept.cardinality
  override def skippedBy(file: Int): Int = if (isKept(file)) -1 else file % 4 - 2
  override def reason(file: Int): Reason =
    Reason(if (isKept(file)) ReasonCode.KeptMayMatch else ReasonCode.Skipped, "conjunct" -> "a")
  override def unusedConjuncts: Map[Int, Reason] =
    Map(1 -> Reason(ReasonCode.PlanningTimeout), 0 -> Reason(ReasonCode.UserFunction, "expression" -> "u"))
}
