package org.metastore.spark.pruning

import org.slf4j.LoggerFactory

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.{Attempt, Indexed, QueryWarnings, Reason, ReasonCode, VisibleText}

object FilterCompiler {
  private val log = LoggerFactory.getLogger("org.metastore.spark.pruning")

  /**
   * Compiles the conjuncts of a scan. Never throws: a conjunct without a rule excludes no file.
   *
   * @param conjuncts the filter above the scan, split at AND, over the scan's output
   * @param allowance limits the values on which the conjuncts' own expressions are evaluated
   */
  def compile(
      conjuncts: Seq[Expression],
      resolver: ColumnResolver,
      allowance: EvaluationAllowance = EvaluationAllowance.unlimited): PruningFilter = {
    val compiler = new Conjuncts(new ColumnLookup(resolver), allowance)
    val compiled = conjuncts.map(compile(_, compiler, allowance))
    val onExpressions = orNil(compileOnExpressions(conjuncts, resolver, compiler))
    val fromConjuncts = orNil(compiler.combine(compiled))
    val fromExpressions = orNil(compileTogether(onExpressions, compiler))
    new ConjunctFilter(
      conjuncts.toIndexedSeq,
      compiled.map(compiler.withValues).toIndexedSeq,
      Indexed.entries(onExpressions) { case (condition, i) => i -> compiler.withValues(condition) },
      fromConjuncts ++ fromExpressions,
      allowance)
  }

  private def compile(
      conjunct: Expression,
      compiler: Conjuncts,
      allowance: EvaluationAllowance): CompiledCondition =
    Attempt.recover {
      allowance.requireTime()
      compiler.compile(conjunct)
    } { failure =>
      val reason = Reason.failure(failure)
      Attempt.orNone(warn(conjunct, reason, failure))
      CompiledCondition(Condition.Unknown(reason), conjunct, None)
    }

  /** Logs an unexpected failure, once for each query: a conjunct may be compiled several times. */
  private def warn(conjunct: Expression, reason: Reason, failure: Throwable): Unit = {
    val message = s"No file is skipped by a condition: $reason"
    if (reason.code == ReasonCode.Failed && QueryWarnings.isNew(message)) {
      log.warn(VisibleText(message))
      log.debug(s"The cause, in ${Attempt.orNone(ConjunctText(conjunct)).getOrElse("a condition")}", failure)
    }
  }

  /** Conjuncts on expressions that have statistics, with their indices. */
  private def compileOnExpressions(
      conjuncts: Seq[Expression],
      resolver: ColumnResolver,
      compiler: Conjuncts): Seq[(CompiledCondition, Int)] =
    for {
      (conjunct, i) <- conjuncts.zipWithIndex
      replaced <- resolver.replaceIn(conjunct)
    } yield compiler.compile(replaced) -> i

  private def compileTogether(
      onExpressions: Seq[(CompiledCondition, Int)],
      compiler: Conjuncts): Seq[Consequence] = {
    val (conditions, indices) = onExpressions.unzip
    compiler.combine(conditions).map(_.at(indices))
  }

  private def orNil[A](values: => Seq[A]): Seq[A] = Attempt.orNone(values).getOrElse(Nil)

  /** The classes that evaluate filters, to be loaded before the first query. */
  private[spark] def pruningClasses: Seq[Class[_]] =
    Seq(FilterCompiler.getClass, classOf[LeafPredicates], classOf[Evaluation])
}
