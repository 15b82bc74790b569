package org.metastore.spark.scan

import java.util.BitSet

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.DataType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.{FilterRequest, JoinKeys, RelationColumns, RowCounts, ScanStatistics}
import org.metastore.spark.pruning.{
  ColumnResolver, EvaluationAllowance, ExpressionColumns, FileMeasure, FileSets, FilterCompiler, LimitedFiles,
  MeasuredFiles, PruningFilter, ScanDecision, ScanEstimate, ScanQuestion, WantedRows
}
import org.metastore.spark.reason.{
  Attempt, Indexed, PlanningTimeoutException, Reason, ReasonCode, Recoverable, VisibleText
}
import org.metastore.spark.statistics.{StatisticsStore, TableStatistics}
import org.metastore.spark.statistics.columns.TableDistinct
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.statistics.values.ColumnHistogram

/** Decides which data files of the scans of one query are read: EXPLAIN, metrics and estimates all show that one decision. */
private[scan] final class ScanPlanner(
    session: SparkSession,
    val settings: MetastoreConf,
    val scope: PlanScope.Scope,
    context: PlanningContext,
    mayLimit: => Boolean = false,
    joinsOf: ScanPlanner => JoinKeys = _ => JoinKeys.Unknown) {

  /** Why no file of this plan may be dropped, whatever the statistics say. */
  val restriction: Option[Reason] = scope match {
    case PlanScope.NoChange(reason) => Some(reason)
    case PlanScope.NumbersOnly(reason) => Some(reason)
    case _ if settings.pruningEnabled => None
    case _ => Some(Reason(ReasonCode.Disabled, "setting" -> MetastoreConf.PruningEnabled.key))
  }

  /** Whether the keys of joins may choose files. */
  def takesKeys: Boolean = restriction.isEmpty && (scope match {
    case PlanScope.OfCommand(pruning) => pruning.byKeys
    case _ => true
  })

  /** The planner of the scans that find what a command changes, in the same plan. */
  def ofCommand(pruning: RowLevelPruning): ScanPlanner =
    new ScanPlanner(session, settings, PlanScope.OfCommand(pruning), context)

  /** Whether a LIMIT may choose files, by rows that match and by their order. */
  lazy val limits: Boolean = restriction.isEmpty && settings.pruningLimitEnabled && mayLimit
  lazy val topRows: Boolean = restriction.isEmpty && settings.pruningTopKEnabled && mayLimit

  /** Whether aggregates may be answered without reading files. */
  lazy val answers: Boolean = restriction.isEmpty && settings.aggregatesEnabled && mayLimit

  private val allowance = new EvaluationAllowance(settings.maxEvaluations, () => requireTime())

  val estimates: Boolean = settings.cboEnabled && !leavesAlone

  private lazy val joins: JoinKeys =
    if (estimates) ScanPlanner.recover("A join", JoinKeys.Unknown)(context.countTime(joinsOf(this)))
    else JoinKeys.Unknown

  /** Whether planning this query has taken longer than it may. */
  def isLate: Boolean = context.remainingMillis(settings.planningTimeoutMillis) <= 0

  /** @throws PlanningTimeoutException planning is late */
  def requireTime(): Unit = if (isLate) throw new PlanningTimeoutException(settings.planningTimeoutMillis)

  /** Counts the time that a block takes against the planning timeout. */
  def countTime[A](block: => A): A = context.countTime(block)

  /** The columns of a table, as its statistics know them; None where there are none. */
  def columns(
      id: TableIdentity,
      lineage: => Iterator[String])(
      resolverOf: Manifest => ColumnResolver): Option[RelationColumns] =
    statistics(id).toOption.map { known =>
      lazy val described = DistributionSnapshot.choose(known.manifest, lineage)
      new RelationColumns(
        columnsOf(known, resolverOf(known.manifest)),
        (key, dataType) => histogramsOf(id, known, described, Seq((key, dataType))).get((key, dataType)))
    }

  /** The rows of a scan that are enough, by what stands above it; None where all are, or nothing is known of its columns. */
  def wantedRows(id: TableIdentity, above: ScanContext)(
      resolverOf: Manifest => ColumnResolver): Option[WantedRows] =
    statistics(id).toOption.flatMap { known =>
      above.wanted(columnsOf(known, resolverOf(known.manifest)))
    }

  /** Whether nothing is done to the plan's scans but to say why. */
  def leavesAlone: Boolean = scope.isInstanceOf[PlanScope.NoChange]

  /** The value that equal scans of a query share. It must not refer to the scan: it is kept while the first of them is in use. */
  def shared[A <: AnyRef](scan: AnyRef)(make: => A): A = context.shareAmongEqual(scan)(make)

  /** The statistics of a table: the same version for every scan of the query. */
  def statistics(table: TableIdentity, version: Option[String] = None): Either[Reason, TableStatistics] =
    context.once(lookupKey(table))(beginLookup(table, version))()

  /** Begins to look for the statistics of the tables of a plan side by side: `statistics` waits for them. */
  def begin(tables: Iterator[TableIdentity]): Unit =
    for (table <- tables) context.once(lookupKey(table))(beginLookup(table, None))

  private def lookupKey(table: TableIdentity) =
    (table.format, table.uuid, table.folder(settings.store), table.nameMapping)

  private def beginLookup(
      table: TableIdentity,
      version: Option[String]): () => Either[Reason, TableStatistics] = {
    val limit = settings.planningTimeoutMillis
    def remaining = context.remainingMillis(limit)
    val lookup = context.countTime {
      val store = StatisticsStore.open(table, settings.store, context.hadoop(session))
      store.begin(table.uuid, remaining, limit, version, table.nameMapping)
    }
    lazy val statistics = context.countTime(lookup(remaining)) match {
      case Left(why) if why.code == ReasonCode.NoStatistics =>
        Left(Reason(why.code, "table" -> table.inStatements))
      case answer => answer
    }
    () => statistics
  }

  /** Decides which files of a scan are read, and estimates the rows where that is wanted. Never throws. */
  def plan(scan: ScannedFiles, request: ScanRequest, estimate: Option[EstimateRequest] = None): ScanPlan =
    Attempt.recover {
      statistics(scan.table) match {
        case Left(why) => leaveAlone(scan, request, why)
        case Right(known) => context.countTime(decide(scan, request, estimate, known))
      }
    } { failure =>
      val why = Reason.failure(failure)
      ScanPlanner.warn(scan.table.name, why, failure)
      leaveAlone(scan, request, why)
    }

  private def leaveAlone(scan: ScannedFiles, request: ScanRequest, why: Reason): ScanPlan =
    ScanPlan(decisionOn(scan, request, scan.listedRows, Left(why)), None)

  private def decide(
      scan: ScannedFiles,
      request: ScanRequest,
      estimate: Option[EstimateRequest],
      known: TableStatistics): ScanPlan = {
    requireTime()
    val filter = compile(request.conjuncts, scan.resolver, known)
    requireTime() // for conjuncts that are long
    val columns = if (restriction.isDefined) Nil else filter.columnKeys ++ request.orderColumn
    val estimated = estimate.getOrElse(EstimateRequest(Nil, scan.resolver))
    lazy val described = DistributionSnapshot.choose(known.manifest, estimated.lineage())
    val waitForHistograms =
      if (estimated.isImmediate) beginHistograms(scan.table, known, described, filter.columnKeys)
      else () => ()
    val joined = new JoinedFiles(scan, filter, known.forFiles(scan.list, columns))
    lazy val unlimited = decisionOn(
      scan,
      request,
      joined.rows,
      judge(joined, isWhole = scan.isWhole && !request.isJoined),
      joined.contradictoryFiles,
      known.fingerprint,
      () => numbers.summary)
    lazy val decided = request.wanted match {
      case Some(wanted) if isOurs(unlimited) => limit(unlimited, joined, wanted)
      case _ => unlimited
    }
    lazy val numbers: ScanStatistics = {
      waitForHistograms()
      numbersOf(joined, decided, request, estimated, described, known)
    }
    ScanPlanner.logDecision(decided)
    ScanPlan(
      decided,
      ScanPlanner.recover(s"The size of ${scan.table.name}", Option.empty[ScanStatistics]) {
        requireTime()
        Some(numbers)
      })
  }

  private def decisionOn(
      scan: ScannedFiles,
      request: ScanRequest,
      rows: Array[Long],
      outcome: Either[Reason, ScanDecision.Verdict],
      contradictoryFiles: BitSet = new BitSet,
      version: String = "",
      estimate: () => Option[ScanEstimate] = () => None,
      answered: Option[BitSet] = None): ScanDecision =
    new ScanDecision(
      scan.table.name,
      scan.list,
      rows,
      outcome,
      contradictoryFiles,
      version,
      scan.filesWithChanges,
      scan.live,
      estimate,
      answered = answered,
      isJoined = request.isJoined,
      question = Some(ScanQuestion(scan.table, request.conjuncts, scan.resolver, request.wanted)))

  /** The decision with the files left out that a LIMIT does not need, or with the reason why there are none. */
  private def limit(unlimited: ScanDecision, joined: JoinedFiles, wanted: WantedRows): ScanDecision = {
    val matching = ScanPlanner.recover("The rows of matching files", new BitSet) {
      FileSets.both(joined.filesToCount, unlimited.survivors)
    }
    val full = joined.where(file => matching.get(file) && joined.deletedRows(file).isZero)
    limitFiles(unlimited, joined, wanted, matching) match {
      case Some(limited) =>
        val outcome = if (unlimited.outcome.isRight) unlimited.outcome else Right(joined.verdict)
        unlimited.copy(outcome = outcome, limited = Some(limited), full = full)
      case None =>
        val topK = whyNoneIsLater(unlimited, joined, wanted, matching)
        val outcome = (unlimited.outcome, topK) match {
          case (Left(_), Some(why)) => Left(why)
          case (judged, _) => judged
        }
        unlimited.copy(outcome = outcome, full = full, topK = topK)
    }
  }

  private def limitFiles(
      unlimited: ScanDecision,
      joined: JoinedFiles,
      wanted: WantedRows,
      matching: BitSet): Option[LimitedFiles] =
    ScanPlanner.recover("A LIMIT", Option.empty[LimitedFiles]) {
      LimitedFiles.by(
        wanted,
        joined.statistics,
        unlimited.survivors,
        unlimited.excludable,
        matching,
        joined.deletedRows)
    }

  /** Why an ORDER BY with a LIMIT leaves none of the files out that are read. */
  private def whyNoneIsLater(
      unlimited: ScanDecision,
      joined: JoinedFiles,
      wanted: WantedRows,
      matching: BitSet): Option[Reason] =
    if (unlimited.after < 2) None
    else ScanPlanner.recover("A LIMIT", Option.empty[Reason]) {
      wanted.order.map { order =>
        LimitedFiles.whyNone(wanted.limit, order, joined.statistics, matching, joined.deletedRows)
      }
    }

  /** The answer of an aggregate of a scan's rows by the statistics; None where they do not tell it of enough files. */
  def measure(scan: ScannedFiles, aggregate: AggregateRequest): Option[MeasuredScan] = for {
    known <- statistics(scan.table).toOption
    measures <- aggregate.measures(scan.resolver)
    measured <- context.countTime(measureFiles(scan, aggregate, measures, known))
  } yield measured

  private def measureFiles(
      scan: ScannedFiles,
      aggregate: AggregateRequest,
      measures: Seq[FileMeasure],
      known: TableStatistics): Option[MeasuredScan] = {
    requireTime()
    val mayRead = scan.areChosen && aggregate.isMergeable
    val filter = compile(aggregate.conjuncts, scan.resolver, known)
    val measuredColumns = measures.flatMap(_.columns)
    val joined =
      new JoinedFiles(scan, filter, known.forFiles(scan.list, filter.columnKeys ++ measuredColumns))
    joined.statistics.load(measuredColumns)
    val verdict = joined.verdict
    val candidates = joined.where(verdict.verdicts.isKept)
    candidates.and(joined.matchingFiles)
    // What cannot be answered is not worth reading lists for.
    if (candidates.cardinality * (if (mayRead) 2 else 1) < verdict.verdicts.keptCount) None
    else {
      val measured = measures.map { measure =>
        requireTime()
        measure.compute(joined.statistics, candidates, joined.deletedRows)
      }
      val answered = joined.where(file => candidates.get(file) && measured.forall(_.isKnown(file)))
      val decision = decisionOn(
        scan,
        ScanRequest(aggregate.conjuncts),
        joined.statistics.rows,
        Right(verdict),
        joined.contradictoryFiles,
        known.fingerprint,
        answered = Some(answered))
      // Reading most of the files and planning twice would gain nothing.
      val isWorthIt = decision.after == 0 || mayRead && decision.after <= answered.cardinality &&
        !decision.survivors.intersects(decision.contradictoryFiles)
      val totals = if (isWorthIt) totalsOf(measured, answered, joined, decision) else None
      if (totals.isDefined) ScanPlanner.logDecision(decision)
      for (values <- totals) yield MeasuredScan(values, decision)
    }
  }

  /** The total of each measure; where files are read, the parts of each. None where one of them is not exact. */
  private def totalsOf(
      measured: Seq[MeasuredFiles],
      answered: BitSet,
      joined: JoinedFiles,
      decision: ScanDecision): Option[Seq[Any]] =
    if (decision.after == 0) Indexed.all(measured.map(_.total(answered)))
    else {
      val others = joined.rowsOf(decision.survivors)
      for (parts <- Indexed.all(measured.map(_.parts(answered, others)))) yield parts.flatten
    }

  private def compile(
      conjuncts: Seq[Expression],
      resolver: ColumnResolver,
      known: TableStatistics): PruningFilter =
    FilterCompiler.compile(conjuncts, columnsOf(known, resolver), allowance)

  /** The columns of a scan, and the expressions over them that have statistics. */
  def columnsOf(known: TableStatistics, resolver: ColumnResolver): ExpressionColumns =
    expressionColumns(known.manifest.expressions, resolver)

  private def expressionColumns(names: Map[String, String], resolver: ColumnResolver) =
    new ExpressionColumns(names, session.sessionState.conf, resolver)

  private def numbersOf(
      joined: JoinedFiles,
      decided: ScanDecision,
      request: ScanRequest,
      estimate: EstimateRequest,
      described: Option[DistributionSnapshot],
      known: TableStatistics): ScanStatistics = {
    val scan = joined.scan
    lazy val distinct = described.fold(Map.empty[String, TableDistinct])(distinctOf(known, _))
    val expressions = described.fold(Map.empty[String, String])(_.snapshot.expressions)
    val filter = new FilterRequest(
      request.conjuncts,
      expressionColumns(expressions, estimate.resolver),
      histogramsOf(scan.table, known, described, _),
      estimate.output,
      joins,
      estimate.isTaken)
    val counts = new RowCounts(decided, known.manifest.latest.flatMap(RowCounts.perByte))
    new ScanStatistics(
      joined.statistics,
      decided,
      scan.files(_).partition,
      counts,
      scan.files(_).deletedRows,
      distinct.get,
      filter,
      described.forall(_.isAncestor),
      described.exists(_.isRead))
  }

  // Where they cannot be read, estimates use the bounds of files.
  private def histogramsOf(
      table: TableIdentity,
      known: TableStatistics,
      described: Option[DistributionSnapshot],
      columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] =
    ScanPlanner.recover(s"A filter on ${table.name}", Map.empty[(String, DataType), ColumnHistogram]) {
      described match {
        case Some(one) => known.histograms(one.snapshot, columns)
        case None => Map.empty
      }
    }

  /** Begins to read how values are spread, while the files are chosen; the result waits for it. */
  private def beginHistograms(
      table: TableIdentity,
      known: TableStatistics,
      described: => Option[DistributionSnapshot],
      columns: Seq[(String, DataType)]): () => Unit =
    ScanPlanner.recover(s"An estimate of ${table.name}", () => ()) {
      described.fold(() => ())(one => known.beginHistograms(one.snapshot, columns))
    }

  private def distinctOf(
      known: TableStatistics,
      described: DistributionSnapshot): Map[String, TableDistinct] =
    context.countTime(known.distinct(described.snapshot).getOrElse(Map.empty))

  // Where the format was asked for a part of the files, the scan has a filter, though none is left to us.
  private def judge(joined: JoinedFiles, isWhole: Boolean): Either[Reason, ScanDecision.Verdict] = {
    val filter = joined.filter
    if (restriction.isDefined) Left(restriction.get)
    else if (filter.conjuncts.isEmpty && isWhole) Left(Reason(ReasonCode.NoFilter))
    else if (filter.conjuncts.nonEmpty && filter.columns.isEmpty) Left(Reason(ReasonCode.NothingToPrune))
    else Right(joined.verdict)
  }

  // A scan of which something else decides is left whole.
  private def isOurs(unlimited: ScanDecision): Boolean =
    unlimited.outcome.fold(_.code == ReasonCode.NoFilter, _ => true)
}

private[scan] object ScanPlanner extends Logging {

  /** A planner for one optimizer run of a session; `joins` finds the keys of its joins. */
  def logical(
      session: SparkSession,
      settings: MetastoreConf,
      scope: PlanScope.Scope,
      mayLimit: => Boolean,
      joins: ScanPlanner => JoinKeys): ScanPlanner =
    new ScanPlanner(session, settings, scope, PlanningContext.current, mayLimit, joins)

  /** A planner for scans that were decided on: what this thread planned earlier may belong to another query. */
  def physical(session: SparkSession, settings: MetastoreConf): ScanPlanner =
    new ScanPlanner(session, settings, PlanScope.Everything, new PlanningContext(None))

  private def logDecision(decision: ScanDecision): Unit =
    logInfo(VisibleText(s"${decision.table} ${decision.label}"))

  /** Whether a job of the query's own was cancelled: then the query is. */
  def isCancelled(e: Throwable): Boolean = Option(e.getMessage).exists(_.contains("SPARK_JOB_CANCELLED"))

  /** The value; `instead` of it, with a line in the log, where computing it fails. */
  def recover[A](about: String, instead: A)(value: => A): A =
    try value
    catch {
      case Recoverable(e) if !isCancelled(e) =>
        warn(about, Reason.failure(e), e)
        instead
    }

  /** Planning goes on without us: one line says why, which is nobody's concern once Spark has ended. */
  def warn(table: String, why: Reason, cause: Throwable): Unit = {
    val message = VisibleText(s"$table is planned without the Metastore: $why")
    if (SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).isDefined) logWarning(message)
    else logInfo(message)
    logDebug("The cause", cause)
  }
}

/** What was decided about a scan, and the numbers of the files that it reads, where there are statistics. */
private[scan] final case class ScanPlan(decision: ScanDecision, numbers: Option[ScanStatistics])

/**
 * The answer of an aggregate, and the files that it is of.
 *
 * @param totals of each measure in their order; where files are read, of each of its parts
 * @param rest   reads the other files, and those alone
 */
private[scan] final case class MeasuredScan(
    totals: Seq[Any],
    decision: ScanDecision,
    rest: Option[LogicalPlan] = None) {

  /** The answer with a plan that reads the files that are not answered; None where they cannot be read alone. */
  def reading(rest: => Option[LogicalPlan]): Option[MeasuredScan] =
    if (decision.after == 0) Some(this)
    else rest.map(plan => copy(rest = Some(plan)))
}
