package org.metastore.spark.pruning

import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeoutException
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.expressions.objects.{InvokeLike, StaticInvoke}
import org.apache.spark.sql.types.FloatType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.statistics.columns.{CatalystValue, TypePromotion}
import org.metastore.spark.statistics.objects.Values

/**
 * A condition on one column, answered by evaluating Catalyst's own expression on values: any deterministic one will do.
 *
 * Not for several threads: some of Spark's expressions keep what they made of the last value.
 */
private[spark] final class ValuePredicate(condition: Expression, leaf: Expression) {
  private val row = new GenericInternalRow(1)
  private val clock = new EvaluationClock

  /** The condition over a row that has the column's value alone. */
  val bound: Expression = condition.transformDown {
    case one if one.semanticEquals(leaf) => BoundReference(0, leaf.dataType, nullable = true)
  }

  private lazy val timed = TimedMatch.within(bound, clock)

  /** Whether it is true of a value; null, false and null are not. Raises what the expression raises, and TimeoutException. */
  def holds(value: Any): Boolean = clock.run {
    row.update(0, value)
    timed.eval(row) == true
  }
}

private[spark] object ValuePredicate {

  /** Whether a condition can be answered while a query is planned, by Spark's own code. */
  def canEvaluate(condition: Expression): Boolean =
    Conjuncts.refusal(condition).isEmpty && !condition.exists {
      case own: StaticInvoke => !own.staticObject.getName.startsWith("org.apache.")
      case call => call.isInstanceOf[InvokeLike] || TimedMatch.isEndless(call)
    }

  /** The one column that a condition reads, if that is all, and its values are read as they are stored. */
  def columnOf(condition: Expression): Option[Expression] = {
    val leaves = ColumnLookup.leavesOf(condition)
    leaves.headOption.filter {
      case leaf @ ColumnLookup.BoundedColumn() =>
        leaves.tail.forall(_.semanticEquals(leaf)) && TypePromotion.hasBounds(leaf.dataType) && canEvaluate(
          condition)
      case _ => false
    }
  }
}

/** The time that all conditions of a query may take to be evaluated on values: a quarter of the planning timeout. */
private[spark] final class EvaluationTime {
  private lazy val limit = MILLISECONDS.toNanos(MetastoreConf().planningTimeoutMillis) / 4
  private var spent = 0L

  /** When it is over, by `System.nanoTime`; raises TimeoutException where it is. */
  def deadline(now: Long): Long =
    if (spent < limit) now + limit - spent
    else throw new TimeoutException("conditions take too long to evaluate")

  def spend(nanos: Long): Unit = spent += nanos
}

private[spark] object EvaluationTime {
  private val threads = new ThreadLocal[EvaluationTime]

  /** A new query begins in this thread. */
  def begin(): Unit = threads.set(new EvaluationTime)

  /** That of the query which this thread plans. */
  def current: EvaluationTime = Option(threads.get).getOrElse(new EvaluationTime)
}

/** Ends the evaluations of one condition where the query's time for them is over: counted values are few. */
private[spark] final class EvaluationClock {
  private val time = EvaluationTime.current
  private var isFirst = true
  private var deadline = 0L

  /** Evaluates it on a value. Raises what that raises, and TimeoutException. */
  def run[A](evaluate: => A): A = {
    val start = System.nanoTime()
    deadline = time.deadline(start)
    try evaluate
    catch {
      case e: TimeoutException =>
        isFirst = false
        throw e
    } finally if (isFirst) isFirst = false // a cold session may take long to load what evaluates it
      else time.spend(System.nanoTime() - start)
  }

  /** Called while a value is evaluated. */
  def check(): Unit =
    if (System.nanoTime() > deadline) throw new TimeoutException("a value takes too long to evaluate")
}

/**
 * How many values of a query may still be put through its predicates.
 *
 * @param requireTime raises where the query's planning has taken too long already
 */
private[spark] final class EvaluationAllowance(most: Long, val requireTime: () => Unit = () => ()) {
  import EvaluationAllowance._

  private val left = new AtomicLong(most)

  def isEmpty: Boolean = left.get <= 0

  /** How many are worth reading: they stand together with those of files that are not asked about. */
  def worthReading: Long = left.get.min(Long.MaxValue / ReadForOne) * ReadForOne

  /** Some values one after the other; asks now and then whether there is time for them. */
  def inTime[A](values: Seq[A]): Iterator[A] = values.iterator.grouped(AskedFor).flatMap { some =>
    requireTime()
    some
  }

  /** Takes some, if as many are left. */
  def take(values: Long): Boolean =
    left.getAndUpdate(rest => if (values <= rest) rest - values else rest) >= values
}

private[spark] object EvaluationAllowance {
  private val ReadForOne = 8
  private val AskedFor = 1024 // values, which take less than a millisecond

  def unlimited: EvaluationAllowance = new EvaluationAllowance(Long.MaxValue)
}

/** Asks one predicate about the values of many files, each different value once. */
private[pruning] final class ValueTrial(
    predicate: ValuePredicate,
    use: ColumnReference,
    allowance: EvaluationAllowance) {
  import ValueTrial._

  private val answers = mutable.HashMap.empty[Long, Answer]

  lazy val holdsForNull: Boolean = predicate.holds(null)
  lazy val holdsForNaN: Boolean = predicate.holds(if (use.dataType == FloatType) Float.NaN else Double.NaN)

  /** Whether it is true of some of the values; true where no more may be asked. */
  def holdsForSome(values: Values): Boolean =
    !allowance.take(values.length) || (0 until values.length).exists(answer(values, _).some)

  /** Whether it is true of all of the values; false where no more may be asked. */
  def holdsForAll(values: Values): Boolean =
    allowance.take(values.length) && (0 until values.length).forall(answer(values, _).all)

  private def answer(values: Values, i: Int): Answer = values match {
    case Values.Longs(array) =>
      answers.getOrElseUpdate(array(i), ask(CatalystValue.ordered(values, i, use.dataType)))
    case _ => ask(CatalystValue.ordered(values, i, use.dataType))
  }

  /** Statistics hold one zero, and files may hold two. */
  private def ask(value: Any): Answer = value match {
    case zero: Double if zero == 0 => Answer(predicate.holds(0.0d), predicate.holds(-0.0d))
    case zero: Float if zero == 0 => Answer(predicate.holds(0.0f), predicate.holds(-0.0f))
    case other => Answer(predicate.holds(other))
  }
}

private object ValueTrial {

  /** Whether a predicate is true of some of the forms in which a value may stand in a file, and whether of all. */
  private final class Answer(val some: Boolean, val all: Boolean)

  private object Answer {
    def apply(forms: Boolean*): Answer = new Answer(forms.contains(true), !forms.contains(false))
  }
}
