package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, EqualTo, Expression, In, InSet, Literal, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LocalRelation, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.StringType

/**
 * The view `columns` of the data source before it is read: it has a row for every column of every data file, and what of it
 * is read depends on the filters of each query.
 *
 * @param read the rows of the columns and data files of these names
 */
final case class ColumnsView(output: Seq[Attribute], table: String, options: Map[String, String])(
    val read: (String => Boolean, String => Boolean) => LocalRelation) extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(read)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(read)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)

  /** The rows, under this plan's attributes. */
  def rows(columns: String => Boolean, files: String => Boolean): LocalRelation = read(columns, files).copy(output = output)
}

/** Reads the view when the filters have reached it; Spark applies them once more. */
object ColumnsViewRule extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case filter @ Filter(condition, view: ColumnsView) =>
      val conjuncts = splitConjunctivePredicates(condition)
      filter.copy(child = view.rows(allowed(conjuncts, view, "column_name"), allowed(conjuncts, view, "path")))
    case call: FunctionCall => call.answer // an analyzer without our rules left it
    case view: ColumnsView => view.rows(_ => true, _ => true)
  }

  /** What the conjuncts leave of a text column's values. */
  private def allowed(conjuncts: Seq[Expression], view: ColumnsView, name: String): String => Boolean = {
    val column = view.output.filter(a => a.name == name && a.dataType == StringType)
    def isIt(expression: Expression) = column.exists(_.semanticEquals(expression))
    val sets = conjuncts.collect {
      case EqualTo(it, Literal(value, StringType)) if isIt(it) => Set(value)
      case EqualTo(Literal(value, StringType), it) if isIt(it) => Set(value)
      case In(it, values) if isIt(it) && values.forall(_.isInstanceOf[Literal]) => values.map(_.asInstanceOf[Literal].value).toSet
      case InSet(it, values) if isIt(it) => values.toSet
    }.map(_.filter(_ != null).map(_.toString))
    text => sets.forall(_.contains(text))
  }
}
