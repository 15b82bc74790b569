package org.metastore.spark.estimates

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging
import org.apache.spark.metastore.ContextConf
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LeafNode, LogicalPlan, Union}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.Recoverable
import org.metastore.spark.tables.TableFormats

/** Switches cost-based optimization on where the user has decided nothing: without it Spark uses our sizes alone. */
object CboSwitch extends Logging {
  private val Cbo = "spark.sql.cbo.enabled"
  private val JoinReorder = "spark.sql.cbo.joinReorder.enabled"

  /** Sets all, unless optimization is decided already or the Metastore is told to keep out. Never throws. */
  def apply(): Unit =
    try ContextConf.active.filter(wanted).foreach { conf =>
        conf.set(Cbo, "true").set(JoinReorder, "true")
        TableFormats.all.flatMap(_.optimizerDefaults).foreach { case (key, value) =>
          conf.setIfMissing(key, value)
        }
        logInfo(s"$Cbo and $JoinReorder are switched on; set one of them, or ${MetastoreConf.CboEnabled.key}=false, to decide")
      }
    catch {
      case Recoverable(e) => logWarning(s"$Cbo stays as it is", e)
    }

  private def wanted(conf: SparkConf): Boolean =
    !conf.contains(Cbo) && !conf.contains(JoinReorder) &&
      Seq(MetastoreConf.Enabled, MetastoreConf.CboEnabled).forall { setting =>
        conf.getOption(setting.key).orElse(sys.env.get(setting.environment)).flatMap(setting.parse)
          .getOrElse(setting.default.toBoolean)
      }
}

/** Leaves joins where they were written of whose keys Spark's estimator knows nothing: out of a `UNION`, computed, by `<=>`. */
object QueryJoinOrder extends PredicateHelper {

  // A hint that asks for nothing: Spark reorders no join that has one.
  private val inPlace = JoinHint(Some(HintInfo()), None)

  /** The plan with such joins marked. */
  def keep(plan: LogicalPlan): LogicalPlan = markJoins(plan)._1

  /** With the columns of the plan of which nothing is known. */
  private def markJoins(plan: LogicalPlan): (LogicalPlan, Set[ExprId]) = plan match {
    case leaf: LeafNode =>
      (leaf, leaf.output.filterNot(column => ScanStatistics.isSupported(column.dataType)).map(_.exprId).toSet)
    case other =>
      val children = other.children.map(markJoins)
      val unknown = children.flatMap(_._2).toSet
      other.withNewChildren(children.map(_._1)) match {
        case union: Union => (union, union.output.map(_.exprId).toSet)
        case join @ Join(left, right, _: InnerLike, Some(condition), JoinHint.NONE)
            if isUnknown(condition, left, right, unknown) =>
          val kept = join.copy(hint = inPlace)
          kept.copyTagsFrom(join)
          (kept, unknown)
        case node => (node, unknown ++ computed(node, unknown))
      }
  }

  /** Of what a node adds to its children's columns, all that is no other name of one that is known. */
  private def computed(node: LogicalPlan, unknown: Set[ExprId]): Set[ExprId] = {
    val renamed =
      node.expressions.collect { case alias @ Alias(of: Attribute, _) if !unknown(of.exprId) => alias.exprId }
    node.output.map(_.exprId).toSet -- node.children.flatMap(_.output).map(_.exprId) -- renamed
  }

  private def isUnknown(
      condition: Expression,
      left: LogicalPlan,
      right: LogicalPlan,
      unknown: Set[ExprId]): Boolean = {
    val keys = splitConjunctivePredicates(condition).collect {
      case equality @ Equality(a, b) if joins(a, b, left, right) || joins(b, a, left, right) => equality
    }
    keys.nonEmpty && !keys.exists {
      case EqualTo(a: Attribute, b: Attribute) => !unknown(a.exprId) && !unknown(b.exprId)
      case _ => false
    }
  }

  private def joins(a: Expression, b: Expression, left: LogicalPlan, right: LogicalPlan): Boolean =
    a.references.nonEmpty && b.references.nonEmpty && canEvaluate(a, left) && canEvaluate(b, right)
}
