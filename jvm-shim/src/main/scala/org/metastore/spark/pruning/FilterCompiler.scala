package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.{Attempt, Indexed, Reason}

object FilterCompiler {

  /**
   * Compiles the conjuncts of a scan. Never throws: a conjunct without a rule is left out, with its reason.
   *
   * @param conjuncts the filter above the scan, split at AND, over the scan's output
   * @param allowance how many values may be put through the conjuncts' own expressions
   */
  def compile(
      conjuncts: Seq[Expression],
      resolver: ColumnResolver,
      allowance: EvaluationAllowance = EvaluationAllowance.unlimited): PruningFilter = {
    val compiler = new Conjuncts(new ColumnLookup(resolver), allowance)
    val compiled = conjuncts.map(compile(_, compiler, allowance))
    val onExpressions = orNone(compileOnExpressions(conjuncts, resolver, compiler))
    val fromConjuncts = orNone(compiler.together(compiled))
    val fromExpressions = orNone(compileTogether(onExpressions, compiler))
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
      CompiledCondition(Condition.Unknown(Reason.failure(failure)), conjunct, None)
    }

  /** Conjuncts on expressions that have statistics, with their places. */
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
    val (conditions, places) = onExpressions.unzip
    compiler.together(conditions).map(_.at(places))
  }

  private def orNone[A](values: => Seq[A]): Seq[A] = Attempt.orNone(values).getOrElse(Nil)

  /** The classes that judge files, for who loads them before the first query. */
  private[spark] def pruningClasses: Seq[Class[_]] =
    Seq(FilterCompiler.getClass, classOf[LeafPredicates], classOf[Evaluation])
}
