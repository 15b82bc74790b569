// What plug-ins for Ranger and the like do to a query of a table with a column `secret`: refuse it, hide rows, mask the
// column, limit the rows of every query. The session's `tests.policy` says at which point of SparkSessionExtensions, and what. SEQ is Spark's own Seq.

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;

class Policy {
  static final String TEXT = "policy-text";

  static String effect(String point) {
    String[] given = ((SparkSession) SparkSession.active()).conf().get("tests.policy", "none none").split(" ");
    return given[0].equals(point) ? given[1] : "none";
  }

  static final org.apache.spark.sql.catalyst.trees.TreeNodeTag DONE = new org.apache.spark.sql.catalyst.trees.TreeNodeTag("policy");

  static Literal text() {
    return Literal.create(TEXT, org.apache.spark.sql.types.StringType$.MODULE$);
  }

  static Attribute secret(scala.collection.Seq output) {
    for (int i = 0; i < output.length(); i++) {
      if (((Attribute) output.apply(i)).name().equals("secret")) return (Attribute) output.apply(i);
    }
    return null;
  }

  static boolean isSecret(LogicalPlan leaf) {
    String name = leaf.getClass().getSimpleName();
    return (name.equals("DataSourceV2Relation") || name.equals("LogicalRelation") || name.equals("DataSourceV2ScanRelation"))
        && secret(leaf.output()) != null;
  }

  static scala.collection.immutable.List seq(List items) {
    return scala.collection.JavaConverters.asScalaBuffer(items).toList();
  }

  static Expression hidden(scala.collection.Seq output) {
    return new Not(new EqualTo(secret(output), text()));
  }

  static scala.collection.immutable.List masked(scala.collection.Seq output) {
    List items = new ArrayList();
    Attribute secret = secret(output);
    for (int i = 0; i < output.length(); i++) {
      Object one = output.apply(i);
      items.add(one != secret ? one : new Alias(text(), "secret", secret.exprId(), secret.qualifier(),
        (scala.Option) scala.None$.MODULE$, seq(new ArrayList())));
    }
    return seq(items);
  }

  static SparkPlan physical(String effect, SparkPlan plan) {
    if (effect.equals("none") || secret(plan.output()) == null) return plan;
    if (effect.equals("refuse")) throw new SecurityException("Permission denied: no SELECT on the table");
    if (effect.equals("filter")) return new FilterExec(hidden(plan.output()), plan);
    return new ProjectExec(masked(plan.output()), plan);
  }
}

class PolicyRewrite extends scala.runtime.AbstractFunction1 {
  final String effect;

  PolicyRewrite(String effect) { this.effect = effect; }

  public Object apply(Object node) {
    LogicalPlan plan = (LogicalPlan) node;
    if (!Policy.isSecret(plan)) return plan.mapChildren(this);
    if (effect.equals("exhaust")) throw new OutOfMemoryError("Java heap space");
    if (effect.equals("refuse")) throw new SecurityException("Permission denied: no SELECT on the table");
    if (effect.equals("once")) {
      if (plan.getTagValue(Policy.DONE).isDefined()) return plan;
      plan.setTagValue(Policy.DONE, Boolean.TRUE);
    }
    if (effect.equals("filter") || effect.equals("once")) return new Filter(Policy.hidden(plan.output()), plan);
    return new Project(Policy.masked(plan.output()), plan);
  }
}

class PolicyRule extends org.apache.spark.sql.catalyst.rules.Rule {
  final String point;

  PolicyRule(String point) { this.point = point; }

  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    String effect = Policy.effect(point);
    if (effect.equals("mark") && plan instanceof Filter && !(plan instanceof MarkedRowFilter)) {
      return new MarkedRowFilter(((Filter) plan).condition(), ((Filter) plan).child());
    }
    if (effect.equals("limit")) return limited((LogicalPlan) plan);
    if (effect.equals("none") || effect.equals("mark")) return plan;
    if (!effect.equals("once") && plan.toString().contains(Policy.TEXT)) return plan;
    return (LogicalPlan) new PolicyRewrite(effect).apply(plan);
  }

  private static LogicalPlan limited(LogicalPlan plan) {
    if (plan.toString().contains("GlobalLimit") || Policy.secret(plan.output()) == null) return plan;
    Literal most = Literal.create(1000000, org.apache.spark.sql.types.IntegerType$.MODULE$);
    return new GlobalLimit(most, new LocalLimit(most, plan));
  }
}

class MarkedRowFilter extends Filter {
  MarkedRowFilter(Expression condition, LogicalPlan child) { super(condition, child); }
}

class PolicyCheck extends scala.runtime.AbstractFunction1 {
  public Object apply(Object plan) {
    if (Policy.effect("check").equals("refuse")) new PolicyRewrite("refuse").apply(plan);
    return scala.runtime.BoxedUnit.UNIT;
  }
}

class PolicyStrategy extends org.apache.spark.sql.execution.SparkStrategy {
  static final Set DONE = Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap()));

  public SEQ apply(LogicalPlan plan) {
    List planned = new ArrayList();
    LogicalPlan leaf = plan instanceof Project ? ((Project) plan).child() : plan;
    String effect = Policy.effect("strategy");
    if (!effect.equals("none") && Policy.isSecret(leaf) && !DONE.contains(plan)) {
      LogicalPlan inner = new Project(leaf.output(), leaf);
      DONE.add(inner);
      SparkPlan rows = Policy.physical(effect, new PlanLater(inner));
      planned.add(plan instanceof Project ? new ProjectExec(((Project) plan).projectList(), rows) : rows);
    }
    return Policy.seq(planned);
  }
}

class PolicyPhysicalRule extends org.apache.spark.sql.catalyst.rules.Rule {
  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    return Policy.physical(Policy.effect("columnar"), (SparkPlan) plan);
  }
}

class PolicyColumnarRule extends org.apache.spark.sql.execution.ColumnarRule {
  public org.apache.spark.sql.catalyst.rules.Rule preColumnarTransitions() { return new PolicyPhysicalRule(); }
}

class PolicyBuilder extends scala.runtime.AbstractFunction1 {
  final String point;

  PolicyBuilder(String point) { this.point = point; }

  public Object apply(Object session) {
    if (point.equals("check")) return new PolicyCheck();
    if (point.equals("strategy")) return new PolicyStrategy();
    if (point.equals("columnar")) return new PolicyColumnarRule();
    return new PolicyRule(point);
  }
}

public class PolicyExtension extends scala.runtime.AbstractFunction1 {
  public Object apply(Object given) {
    org.apache.spark.sql.SparkSessionExtensions extensions = (org.apache.spark.sql.SparkSessionExtensions) given;
    extensions.injectResolutionRule(new PolicyBuilder("resolution"));
    extensions.injectPostHocResolutionRule(new PolicyBuilder("posthoc"));
    extensions.injectCheckRule(new PolicyBuilder("check"));
    extensions.injectOptimizerRule(new PolicyBuilder("optimizer"));
    extensions.injectPreCBORule(new PolicyBuilder("precbo"));
    extensions.injectPlannerStrategy(new PolicyBuilder("strategy"));
    extensions.injectColumnar(new PolicyBuilder("columnar"));
    return scala.runtime.BoxedUnit.UNIT;
  }
}
