package org.metastore.peers;

import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Runs the calls of a test whose numbers {@code peers.calls} lists; all of them where it lists none. */
public final class ChosenCalls implements ExecutionCondition {
  static final String REASON = "not chosen";
  private static final Pattern CALL = Pattern.compile("test-template-invocation:#(\\d+)");
  private final String numbers = System.getProperty("peers.calls", "");
  private final Set<String> chosen = Set.of(numbers.split(","));

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    Matcher call = CALL.matcher(context.getUniqueId());
    boolean isChosen = numbers.isEmpty() || !call.find() || chosen.contains(call.group(1));
    return isChosen ? ConditionEvaluationResult.enabled("") : ConditionEvaluationResult.disabled(REASON);
  }
}
