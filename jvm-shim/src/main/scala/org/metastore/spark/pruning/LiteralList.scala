package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{Expression, In, InSet, Literal}

/** Matches `value IN (literals)`; the optimizer turns a long list into a set. */
private[spark] object LiteralList {
  def unapply(condition: Expression): Option[(Expression, Seq[Any])] = condition match {
    case In(value, list) if list.forall(_.isInstanceOf[Literal]) =>
      Some(value -> list.map(_.asInstanceOf[Literal].value))
    case InSet(value, set) =>
      Some(value -> set.toSeq)
    case _ => None
  }
}
