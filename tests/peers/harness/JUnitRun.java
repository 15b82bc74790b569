package org.metastore.peers;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;

import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs a class of JUnit's tests, and writes the result of each test as {@link TestLog} does. */
public final class JUnitRun implements TestExecutionListener {
  private static final int CAUSES = 3;
  private final Path file = Path.of(System.getProperty("peers.log"));
  private boolean allPassed = true;

  /** Takes the name of the class, then those of the methods that are run; all of them where there is none. */
  public static void main(String[] arguments) {
    Set<String> methods = Arrays.stream(arguments).skip(1).collect(Collectors.toSet());
    PostDiscoveryFilter chosen = test -> FilterResult.includedIf(methods.isEmpty() || test.getSource()
        .filter(MethodSource.class::isInstance).map(MethodSource.class::cast)
        .map(method -> methods.contains(method.getMethodName())).orElse(true));
    LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
        .selectors(DiscoverySelectors.selectClass(arguments[0])).filters(chosen)
        .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true") // of ChosenCalls
        .build();
    JUnitRun run = new JUnitRun();
    LauncherFactory.create().execute(request, run);
    System.exit(run.allPassed ? 0 : 1); // threads of servers may be left
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      write(nameOf(test), "started", "");
    }
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    if (!reason.equals(ChosenCalls.REASON)) {
      write(nameOf(test), "ignored", reason);
    }
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
    allPassed &= passed;
    if (test.isTest() || !passed) {
      write(nameOf(test), resultOf(result), result.getThrowable().map(JUnitRun::messageOf).orElse(""));
    }
  }

  private static String resultOf(TestExecutionResult result) {
    switch (result.getStatus()) {
      case SUCCESSFUL: return "passed";
      case ABORTED: return "canceled";
      default: return "failed";
    }
  }

  /** Name of the method, number and parameters of its call; ports differ from run to run. */
  private static String nameOf(TestIdentifier test) {
    MethodSource method = test.getSource().filter(MethodSource.class::isInstance).map(MethodSource.class::cast).orElse(null);
    if (method == null) {
      return "(the suite itself)";
    }
    String call = test.getUniqueIdObject().getLastSegment().getValue();
    if (!call.startsWith("#")) {
      return method.getMethodName();
    }
    return method.getMethodName() + " " + call + " " + test.getDisplayName().replaceAll("localhost:\\d+", "localhost");
  }

  private static String messageOf(Throwable error) {
    StringBuilder text = new StringBuilder(error.toString());
    Throwable cause = error.getCause();
    for (int depth = 0; depth < CAUSES && cause != null; depth++, cause = cause.getCause()) {
      text.append("\ncaused by ").append(cause);
    }
    StringWriter trace = new StringWriter();
    error.printStackTrace(new PrintWriter(trace));
    System.err.println(trace);
    return text.toString();
  }

  private void write(String test, String result, String message) {
    String line = String.format("{\"test\": %s, \"result\": %s, \"message\": %s}%n",
        Json.quote(test), Json.quote(result), Json.quote(message));
    try {
      Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
