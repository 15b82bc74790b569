package org.metastore.spark.estimates

import org.metastore.spark.reason.Recoverable

private[estimates] object EvaluationFailure {

  /** None where evaluating a condition fails, by an error of its own stack and classes too, without harm to who plans a query. */
  def orNone[A](evaluate: => A): Option[A] =
    try Some(evaluate)
    catch { case Recoverable(_) => None }
}
