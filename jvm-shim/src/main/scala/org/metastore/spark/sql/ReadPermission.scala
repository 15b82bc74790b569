package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}

/**
 * Asks whether the session's user may see every value of a table, before statistics tell of them.
 *
 * Catalogs check privileges when a table is loaded, but plug-ins such as Ranger's and Kyuubi's do it in rules of the
 * analyzer and the optimizer, which no table function passes through: they are shown the query that reads all columns.
 */
private[sql] object ReadPermission {

  /**
   * Passes where the query would be allowed and left as it is; what a rule throws is thrown.
   *
   * @param name     as the user wrote it
   * @param relation the resolved table without aliases
   * @throws MetastoreException a rule hides rows or values
   */
  def require(session: SparkSession, name: String, relation: LogicalPlan): Unit = {
    val query = Project(relation.output, relation)
    session.sessionState.analyzer.checkAnalysis(query)
    // Not the whole optimizer: it would plan the table's files.
    val seen = rulesOfOthers(session).foldLeft[LogicalPlan](query)((plan, rule) => rule(plan))
    if (!isWhole(seen, relation)) throw MetastoreException.hidden(name)
  }

  private def rulesOfOthers(session: SparkSession) = {
    val state = session.sessionState
    (state.optimizer.extendedOperatorOptimizationRules ++ state.optimizer.preCBORules ++ state.experimentalMethods.extraOptimizations)
      .filterNot(rule => notAsked.exists(rule.getClass.getName.startsWith))
  }

  // Ours, and Delta's and Hudi's, which would list the table's files.
  private val notAsked = Seq("org.metastore.", "org.apache.spark.sql.delta.", "org.apache.spark.sql.hudi.")

  /** Whether a plan still reads all rows and columns: nothing but columns by name above the same kind of relation. */
  private def isWhole(plan: LogicalPlan, relation: LogicalPlan): Boolean = plan match {
    case Project(columns, child) => columns.forall(_.isInstanceOf[Attribute]) && isWhole(child, relation)
    case leaf => leaf.getClass == relation.getClass && relation.outputSet.subsetOf(leaf.outputSet)
  }
}
