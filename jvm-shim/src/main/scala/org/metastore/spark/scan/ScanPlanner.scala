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
  MeasuredFiles, PruningFilter, ScanDecision, ScanQuestion, WantedRows
}
import org.metastore.spark.reason.{
  Attempt, Indexed, PlanningTimeoutException, QueryWarnings, Reason, ReasonCode, Recoverable, VisibleText
}
import org.metastore.spark.statistics.{StatisticsStore, TableStatistics}
import org.metastore.spark.statistics.columns.TableDistinct
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.statistics.values.ColumnHistogram

/** Decides which data files a query's scans read. EXPLAIN, metrics and estimates show this decision. */
private[scan] final class ScanPlanner(
    session: SparkSession,
    val settings: MetastoreConf,
    val scope: PlanScope.Scope,
    context: PlanningContext,
    mayLimit: => Boolean = false,
    joinsOf: ScanPlanner => JoinKeys = _ => JoinKeys.Unknown) {

  /** The reason why no file of this plan may be dropped, whatever the statistics are; or None. */
  val restriction: Option[Reason] = scope match {
    case PlanScope.NoChange(reason) => Some(reason)
    case PlanScope.NumbersOnly(reason) => Some(reason)
    case _ if settings.pruningEnabled => None
    case _ => Some(Reason(ReasonCode.Disabled, "setting" -> MetastoreConf.PruningEnabled.key))
  }

  /** Whether the keys of joins may choose files. */
  def takesKeys: Boolean = restriction.isEmpty && (scope match {
    case PlanScope.RowSearch(pruning) => pruning.byKeys
    case _ => true
  })

  /** The planner for those scans of the same plan that find the rows or files that a command changes. */
  def forCommand(pruning: RowLevelPruning): ScanPlanner =
    new ScanPlanner(session, settings, PlanScope.RowSearch(pruning), context)

  /** Whether a LIMIT may choose files: by the number of matching rows, and by their order. */
  lazy val limits: Boolean = restriction.isEmpty && settings.pruningLimitEnabled && mayLimit
  lazy val topRows: Boolean = restriction.isEmpty && settings.pruningTopKEnabled && mayLimit

  /** Whether aggregates may be answered without reading files. */
  lazy val answers: Boolean = restriction.isEmpty && settings.aggregatesEnabled && mayLimit

  private val allowance = new EvaluationAllowance(settings.maxEvaluations, () => requireTime())

  val estimates: Boolean = settings.cboEnabled && !leavesAlone

  private lazy val joins: JoinKeys =
    if (estimates) ScanPlanner.recover("A join", JoinKeys.Unknown)(context.countTime(joinsOf(this)))
    else JoinKeys.Unknown

  /** Whether planning this query has exceeded the timeout. */
  def isLate: Boolean = context.remainingMillis(settings.planningTimeoutMillis) <= 0

  /** @throws PlanningTimeoutException planning is late */
  def requireTime(): Unit = if (isLate) throw new PlanningTimeoutException(settings.planningTimeoutMillis)

  /** Counts the time that a block takes against the planning timeout. */
  def countTime[A](block: => A): A = context.countTime(block)

  /** The columns of a table in its statistics, or None if it has no statistics. */
  def columns(
      id: TableIdentity,
      lineage: => Iterator[String])(
      resolverOf: Manifest => ColumnResolver): Option[RelationColumns] =
    statistics(id).toOption.map { statistics =>
      lazy val distributions = DistributionSnapshot.choose(statistics.manifest, lineage)
      def histogram(column: (String, DataType)) =
        histogramsOf(id, statistics, distributions, Seq(column)).get(column)
      new RelationColumns(
        columnsOf(statistics, resolverOf(statistics.manifest)),
        (key, dataType) => histogram((key, dataType)))
    }

  /** The rows that LIMIT and ORDER BY need, or None. */
  def wantedRows(id: TableIdentity, scanContext: ScanContext)(
      resolverOf: Manifest => ColumnResolver): Option[WantedRows] =
    statistics(id).toOption.flatMap { statistics =>
      scanContext.wanted(columnsOf(statistics, resolverOf(statistics.manifest)))
    }

  /** Whether the plan's scans do not change, except that they show the reason. */
  def leavesAlone: Boolean = scope.isInstanceOf[PlanScope.NoChange]

  /** The value that equal scans share. It must not refer to a scan, or neither would ever be released. */
  def shared[A <: AnyRef](scan: AnyRef)(make: => A): A = context.shareAmongEqual(scan)(make)

  /** The statistics of a table: the same version for every scan of the query. */
  def statistics(table: TableIdentity, version: Option[String] = None): Either[Reason, TableStatistics] =
    context.once(lookupKey(table))(beginLookup(table, version))()

  /** Begins to look up the statistics of a plan's tables in parallel: `statistics` waits for them. */
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
      case Left(reason) if reason.code == ReasonCode.NoStatistics =>
        Left(Reason(reason.code, "table" -> table.inStatements))
      case answer => answer
    }
    () => statistics
  }

  /** Decides which files of a scan are read, and estimates its rows on request. Never throws. */
  def plan(scan: ScannedFiles, request: ScanRequest, estimate: Option[EstimateRequest] = None): ScanPlan =
    Attempt.recover {
      statistics(scan.table) match {
        case Left(reason) => leaveAlone(scan, request, reason)
        case Right(statistics) => context.countTime(decide(scan, request, estimate, statistics))
      }
    } { failure =>
      val reason = Reason.failure(failure)
      ScanPlanner.warn(scan.table.name, reason, failure)
      leaveAlone(scan, request, reason)
    }

  private def leaveAlone(scan: ScannedFiles, request: ScanRequest, reason: Reason): ScanPlan =
    ScanPlan(decisionOn(scan, request, scan.listedRows, Left(reason)), None)

  private def decide(
      scan: ScannedFiles,
      request: ScanRequest,
      estimate: Option[EstimateRequest],
      statistics: TableStatistics): ScanPlan = {
    requireTime()
    val filter = compile(request.conjuncts, scan.resolver, statistics)
    requireTime() // for conjuncts that are long
    val columns = if (restriction.isDefined) Nil else filter.columnKeys ++ request.orderColumn
    val estimateRequest = estimate.getOrElse(EstimateRequest(Nil, scan.resolver))
    lazy val distributions = DistributionSnapshot.choose(statistics.manifest, estimateRequest.lineage())
    val waitForHistograms =
      if (estimateRequest.isImmediate)
        beginHistograms(scan.table, statistics, distributions, filter.columnKeys)
      else () => ()
    val joined = new JoinedFiles(scan, filter, statistics.forFiles(scan.list, columns))
    val unlimited = decisionOn(
      scan,
      request,
      joined.rows,
      judge(joined, isWhole = scan.isWhole && !request.isJoined),
      joined.contradictoryFiles,
      statistics.fingerprint)
    val limited = request.wanted match {
      case Some(wanted) if isOurs(unlimited) => limit(unlimited, joined, wanted)
      case _ => unlimited
    }
    lazy val numbers = {
      waitForHistograms()
      numbersOf(joined, limited, request, estimateRequest, distributions, statistics)
    }
    val decision = limited.copy(estimate = () => numbers.summary)
    ScanPlanner.logDecision(decision)
    ScanPlan(
      decision,
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
      answered = answered,
      isJoined = request.isJoined,
      question = Some(ScanQuestion(scan.table, request.conjuncts, scan.resolver, request.wanted)))

  /** Drops the files that a LIMIT does not need, or adds the reason why it needs all files. */
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
        val topK = unlimitedReason(unlimited, joined, wanted, matching)
        val outcome = (unlimited.outcome, topK) match {
          case (Left(_), Some(reason)) => Left(reason)
          case (outcome, _) => outcome
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

  /** The reason why an ORDER BY with a LIMIT drops none of the files. */
  private def unlimitedReason(
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

  /** Answers an aggregate over a scan by the statistics; None if they answer for too few files. */
  def measure(scan: ScannedFiles, aggregate: AggregateRequest): Option[MeasuredScan] = for {
    statistics <- statistics(scan.table).toOption
    measures <- aggregate.measures(scan.resolver)
    measured <- context.countTime(measureFiles(scan, aggregate, measures, statistics))
  } yield measured

  private def measureFiles(
      scan: ScannedFiles,
      aggregate: AggregateRequest,
      measures: Seq[FileMeasure],
      statistics: TableStatistics): Option[MeasuredScan] = {
    requireTime()
    val mayRead = scan.areChosen && aggregate.isMergeable
    val filter = compile(aggregate.conjuncts, scan.resolver, statistics)
    val measuredColumns = measures.flatMap(_.columns)
    val joined =
      new JoinedFiles(scan, filter, statistics.forFiles(scan.list, filter.columnKeys ++ measuredColumns))
    joined.statistics.load(measuredColumns)
    val verdict = joined.verdict
    val candidates = joined.where(verdict.verdicts.isKept)
    candidates.and(joined.matchingFiles)
    // If the remaining files can be read, an answer for half of the files is enough.
    val filesPerCandidate = if (mayRead) 2 else 1
    val answersMostFiles = candidates.cardinality * filesPerCandidate >= verdict.verdicts.keptCount
    // Measures read lists: this is not worth it without an answer.
    if (!answersMostFiles) None
    else {
      val measured = computeMeasures(measures, joined, candidates)
      val answered = joined.where(file => candidates.get(file) && measured.forall(_.isKnown(file)))
      val decision = decisionOn(
        scan,
        ScanRequest(aggregate.conjuncts),
        joined.statistics.rows,
        Right(verdict),
        joined.contradictoryFiles,
        statistics.fingerprint,
        answered = Some(answered))
      if (!isWorthIt(decision, answered, mayRead)) None
      else for (totals <- totalsOf(measured, answered, joined, decision)) yield {
        ScanPlanner.logDecision(decision)
        MeasuredScan(totals, decision)
      }
    }
  }

  private def computeMeasures(
      measures: Seq[FileMeasure],
      joined: JoinedFiles,
      candidates: BitSet): Seq[MeasuredFiles] =
    measures.map { measure =>
      requireTime()
      measure.compute(joined.statistics, candidates, joined.deletedRows)
    }

  /** Whether the answer pays off: if most files are read anyway, a second plan gains nothing. */
  private def isWorthIt(decision: ScanDecision, answered: BitSet, mayRead: Boolean): Boolean =
    if (decision.after == 0) true
    else {
      val readsFewFiles = mayRead && decision.after <= answered.cardinality
      val isConsistent = !decision.survivors.intersects(decision.contradictoryFiles)
      readsFewFiles && isConsistent
    }

  /** The total of each measure, or its parts if files are read; None if one of them is not exact. */
  private def totalsOf(
      measured: Seq[MeasuredFiles],
      answered: BitSet,
      joined: JoinedFiles,
      decision: ScanDecision): Option[Seq[Any]] =
    if (decision.after == 0) Indexed.all(measured.map(_.total(answered)))
    else {
      val rowsToRead = joined.rowsOf(decision.survivors)
      for (parts <- Indexed.all(measured.map(_.parts(answered, rowsToRead)))) yield parts.flatten
    }

  private def compile(
      conjuncts: Seq[Expression],
      resolver: ColumnResolver,
      statistics: TableStatistics): PruningFilter =
    FilterCompiler.compile(conjuncts, columnsOf(statistics, resolver), allowance)

  /** The columns of a scan, and the expressions over them that have statistics. */
  def columnsOf(statistics: TableStatistics, resolver: ColumnResolver): ExpressionColumns =
    expressionColumns(statistics.manifest.expressions, resolver)

  private def expressionColumns(names: Map[String, String], resolver: ColumnResolver) =
    new ExpressionColumns(names, session.sessionState.conf, resolver)

  private def numbersOf(
      joined: JoinedFiles,
      decision: ScanDecision,
      request: ScanRequest,
      estimate: EstimateRequest,
      distributions: Option[DistributionSnapshot],
      statistics: TableStatistics): ScanStatistics = {
    val scan = joined.scan
    lazy val distinct = distributions.fold(Map.empty[String, TableDistinct])(distinctOf(statistics, _))
    val expressions = distributions.fold(Map.empty[String, String])(_.snapshot.expressions)
    val filter = new FilterRequest(
      request.conjuncts,
      expressionColumns(expressions, estimate.resolver),
      histogramsOf(scan.table, statistics, distributions, _),
      estimate.output,
      joins,
      estimate.isTaken)
    val counts = new RowCounts(decision, statistics.manifest.latest.flatMap(RowCounts.perByte))
    new ScanStatistics(
      joined.statistics,
      decision,
      scan.files(_).partition,
      counts,
      scan.files(_).deletedRows,
      distinct.get,
      filter,
      distributions.forall(_.isAncestor),
      distributions.exists(_.isRead))
  }

  // If histograms cannot be read, estimates use the bounds of files.
  private def histogramsOf(
      table: TableIdentity,
      statistics: TableStatistics,
      distributions: Option[DistributionSnapshot],
      columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] =
    ScanPlanner.recover(s"A filter on ${table.name}", Map.empty[(String, DataType), ColumnHistogram]) {
      distributions match {
        case Some(source) => statistics.histograms(source.snapshot, columns)
        case None => Map.empty
      }
    }

  /** Begins to read histograms while files are chosen; the result waits for them. */
  private def beginHistograms(
      table: TableIdentity,
      statistics: TableStatistics,
      distributions: => Option[DistributionSnapshot],
      columns: Seq[(String, DataType)]): () => Unit =
    ScanPlanner.recover(s"An estimate of ${table.name}", () => ()) {
      distributions.fold(() => ())(source => statistics.beginHistograms(source.snapshot, columns))
    }

  private def distinctOf(
      statistics: TableStatistics,
      distributions: DistributionSnapshot): Map[String, TableDistinct] =
    context.countTime(statistics.distinct(distributions.snapshot).getOrElse(Map.empty))

  // A scan of a part of the files has a filter, even if the format took all conjuncts.
  private def judge(joined: JoinedFiles, isWhole: Boolean): Either[Reason, ScanDecision.Verdict] = {
    val filter = joined.filter
    if (restriction.isDefined) Left(restriction.get)
    else if (filter.conjuncts.isEmpty && isWhole) Left(Reason(ReasonCode.NoFilter))
    else if (filter.conjuncts.nonEmpty && filter.columns.isEmpty) Left(Reason(ReasonCode.NothingToPrune))
    else Right(joined.verdict)
  }

  // A LIMIT may still choose files of a scan without a filter, but not of a scan that is restricted.
  private def isOurs(unlimited: ScanDecision): Boolean =
    unlimited.outcome.fold(_.code == ReasonCode.NoFilter, _ => true)
}

private[scan] object ScanPlanner extends Logging {

  /** Makes a planner for one optimizer run of a session; `joins` finds the keys of its joins. */
  def logical(
      session: SparkSession,
      settings: MetastoreConf,
      scope: PlanScope.Scope,
      mayLimit: => Boolean,
      joins: ScanPlanner => JoinKeys): ScanPlanner =
    new ScanPlanner(session, settings, scope, PlanningContext.current, mayLimit, joins)

  /** Makes a planner for physical scans. It shares nothing: the thread may have planned other queries. */
  def physical(session: SparkSession, settings: MetastoreConf): ScanPlanner =
    new ScanPlanner(session, settings, PlanScope.Everything, new PlanningContext(None))

  private def logDecision(decision: ScanDecision): Unit =
    logInfo(VisibleText(s"${decision.table} ${decision.label}"))

  /** Whether a job of the query was cancelled: then the query is cancelled. */
  def isCancelled(e: Throwable): Boolean = Option(e.getMessage).exists(_.contains("SPARK_JOB_CANCELLED"))

  /** Returns the value; if computing it fails, logs a line and returns `instead`. */
  def recover[A](about: String, instead: A)(value: => A): A =
    try value
    catch {
      case Recoverable(e) if !isCancelled(e) =>
        warn(about, Reason.failure(e), e)
        instead
    }

  /** Logs once a query why planning continues without us; after Spark has ended, this is no warning. */
  def warn(table: String, reason: Reason, cause: Throwable): Unit = {
    val message = VisibleText(s"$table is planned without the Metastore: $reason")
    val hasSession = SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).isDefined
    if (!hasSession) logInfo(message)
    else if (QueryWarnings.isNew(message)) logWarning(message)
    logDebug("The cause", cause)
  }
}

/** The decision on a scan, and the numbers of the files that it reads, if there are statistics. */
private[scan] final case class ScanPlan(decision: ScanDecision, numbers: Option[ScanStatistics])

/**
 * The answer to an aggregate, and the files that it covers.
 *
 * @param totals the total of each measure, in order; if files are read, the total of each part
 * @param rest   the plan that reads exactly the unanswered files
 */
private[scan] final case class MeasuredScan(
    totals: Seq[Any],
    decision: ScanDecision,
    rest: Option[LogicalPlan] = None) {

  /** The answer with a plan that reads the unanswered files; None if exactly these cannot be read. */
  def reading(rest: => Option[LogicalPlan]): Option[MeasuredScan] =
    if (decision.after == 0) Some(this)
    else rest.map(plan => copy(rest = Some(plan)))
}
