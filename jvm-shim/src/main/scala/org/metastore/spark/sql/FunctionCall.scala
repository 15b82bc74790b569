package org.metastore.spark.sql

import java.security.PrivilegedAction
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, ExecutionException, TimeoutException, TimeUnit}

import org.apache.hadoop.security.UserGroupInformation

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy, SQLExecution}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.tables.ViewNamespace

/**
 * The call of a table function before it is answered. Spark looks functions up with its catalog locked, and every other
 * statement of the session would wait for what is read there.
 */
final case class FunctionCall(output: Seq[Attribute], function: String)(val read: Seq[Attribute] => LogicalPlan)
  extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(read)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(read)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)

  def answer: LogicalPlan = read(output)
}

/** Answers calls once all names are resolved and nothing is locked; still in analysis, so that mistakes are told at once. */
object FunctionCallRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators { case call: FunctionCall => call.answer }
}

/** The call of a table function that starts jobs: it is answered when the statement is executed, in its thread and job group. */
final case class JobFunctionCall(output: Seq[Attribute], function: String, call: Arguments)(val run: () => Seq[InternalRow])
  extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run)
  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(run)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/** Rows of a call that a statement makes once, however often it names them: a common table expression stands in it as often. */
private[sql] final class StatementMemo(session: SparkSession, rows: () => Seq[InternalRow]) extends (() => Seq[InternalRow]) {
  private var last: Option[(String, Seq[InternalRow])] = None

  override def apply(): Seq[InternalRow] =
    session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) match {
      case null => rows() // scalastyle:ignore
      case statement => synchronized {
        last.filter(_._1 == statement).getOrElse {
          last = Some(statement -> rows())
          last.get
        }._2
      }
    }
}

/** The same in a physical plan. */
final case class JobFunctionCallExec(
    output: Seq[Attribute], function: String, @transient call: Arguments)(@transient run: () => Seq[InternalRow]) extends LeafExecNode {

  @transient private lazy val rows: Array[InternalRow] = {
    val unsafe = UnsafeProjection.create(output, output)
    run().map(unsafe(_).copy(): InternalRow).toArray
  }

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run)
  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override protected def doExecute(): RDD[InternalRow] = sparkContext.parallelize(rows.toSeq, 1)
  override def executeCollect(): Array[InternalRow] = rows
}

/** Plans deferred calls. */
object JobFunctionStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case answer: JobFunctionCall => Seq(JobFunctionCallExec(answer.output, answer.function, answer.call)(answer.run))
    case _ => Nil
  }
}

/**
 * A thread that reads what a table function or the data source answers: storage or a catalog that hangs keeps this thread, and
 * the one that asks can be interrupted.
 */
private final class ReadThread[T](read: () => T) extends Thread("metastore-read") {
  private val user = UserGroupInformation.getCurrentUser
  private val ofView = Some(SQLConf.get).filterNot(_ eq SparkSession.active.sessionState.conf)
  private val namespace = ViewNamespace.current
  private val result = new CompletableFuture[T]
  setDaemon(true)

  override def run(): Unit = ViewNamespace.within(namespace) {
    val reading: PrivilegedAction[Boolean] = () =>
      try result.complete(ofView.fold(read())(conf => SQLConf.withExistingConf(conf)(read())))
      catch { case e: Throwable => result.completeExceptionally(e) } // also what is fatal: somebody waits for it
    user.doAs(reading)
  }

  private def await(limitMillis: Option[Long]): T = try limitMillis match {
    case Some(limit) => result.get(limit, TimeUnit.MILLISECONDS)
    case None => result.get()
  } catch {
    case e: ExecutionException => throw e.getCause
    case e @ (_: TimeoutException | _: InterruptedException) =>
      ReadThread.hangingThreads.add(this)
      interrupt()
      throw e
  }
}

private[sql] object ReadThread {
  private val MostAbandoned = 64
  private val hangingThreads = ConcurrentHashMap.newKeySet[Thread]()

  /** Reads in a thread of its own. */
  def run[T](limitMillis: Option[Long])(read: => T): T = {
    hangingThreads.removeIf(!_.isAlive)
    if (hangingThreads.size >= MostAbandoned) throw new TimeoutException
    val thread = new ReadThread(() => read)
    thread.start()
    thread.await(limitMillis)
  }
}
