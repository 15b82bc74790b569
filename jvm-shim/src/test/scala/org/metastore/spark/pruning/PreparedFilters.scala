package org.metastore.spark.pruning

import java.util.BitSet

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Expression

/** Filters that were parsed, analyzed and optimized once: the rules are compiled and asked anew each time. A filter is a line. */
final class PreparedFilters private[pruning] (filters: Array[Seq[Expression]], probe: PruningProbe) {

  /**
   * For each file `1` if a filter has to read it, and behind a space `1` if it is proven that all its rows match.
   *
   * @param allowance how many values may be put through the conjuncts of a filter
   */
  def verdicts(allowance: Long): String = answers { conjuncts =>
    def compiled = FilterCompiler.compile(conjuncts, probe.resolver, new EvaluationAllowance(allowance))
    val found = compiled.evaluate(probe.statistics)
    val kept = FileSets.where(found.length)(found.isKept)
    s"${PreparedFilters.bits(kept, found.length)} ${PreparedFilters.bits(compiled.allRowsMatch(probe.statistics), found.length)}"
  }

  /** As `PruningProbe.explain`. */
  def explained: String =
    answers(conjuncts => probe.explain(FilterCompiler.compile(conjuncts, probe.resolver)))

  private def answers(ask: Seq[Expression] => String): String =
    filters.map(PreparedFilters.orError(ask(_))).mkString("\n")
}

private[pruning] object PreparedFilters {

  /** For each file `1` if it is among some. */
  def bits(files: BitSet, length: Int): String =
    (0 until length).map(i => if (files.get(i)) '1' else '0').mkString

  /** The files that a text has a `1` for. */
  def files(bits: String): BitSet = FileSets.where(bits.length)(bits(_) == '1')

  /** The answer in one line, or what was thrown. */
  def orError[T](ask: T => String)(asked: T): String =
    try ask(asked).replace("\n", " ")
    catch { case NonFatal(e) => s"error ${e.getClass.getName}" }
}
