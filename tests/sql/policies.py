"""A plug-in that hides rows or refuses to read, as those for Ranger do: in a rule of Spark's optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "tests.policy"
_RULE = """
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

public class PolicyRule extends org.apache.spark.sql.catalyst.rules.Rule {
  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    String policy = ((SparkSession) SparkSession.active()).conf().get("tests.policy", "none");
    if (!plan.toString().contains("RelationV2")) return plan;
    if (policy.equals("mark") && plan instanceof Filter && !(plan instanceof MarkedRowFilter)) {
      return new MarkedRowFilter(((Filter) plan).condition(), ((Filter) plan).child());
    }
    if (policy.equals("refuse")) throw new SecurityException("Permission denied: no SELECT on the table");
    if (policy.equals("filter") && plan instanceof Project) {
      Project project = (Project) plan;
      return new Project(project.projectList(), new Filter(Literal.create(Boolean.FALSE,
        org.apache.spark.sql.types.BooleanType$.MODULE$), project.child()));
    }
    return plan;
  }
}
"""
_MARKED = """
class MarkedRowFilter extends org.apache.spark.sql.catalyst.plans.logical.Filter {
  MarkedRowFilter(org.apache.spark.sql.catalyst.expressions.Expression condition,
      org.apache.spark.sql.catalyst.plans.logical.LogicalPlan child) {
    super(condition, child);
  }
}
"""
_BUILDER = """
public class PolicyBuilder extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) { return new PolicyRule(); }
}
"""


def session_with_rule(spark: SparkSession) -> SparkSession:
    """A new session with the rule, which does nothing until the session's `tests.policy` says what.

    `refuse` and `filter` are for everybody, `mark` leaves the rows and the name of a row filter in the plan.
    """
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_RULE + _MARKED + _BUILDER.replace("public class", "class"))
    builder = compiler.getClassLoader().loadClass("PolicyBuilder").getDeclaredConstructors()[0]
    builder.setAccessible(True)
    spark._jsparkSession.extensions().injectOptimizerRule(
        builder.newInstance(spark.sparkContext._gateway.new_array(jvm.Object, 0))
    )
    return spark.newSession()
