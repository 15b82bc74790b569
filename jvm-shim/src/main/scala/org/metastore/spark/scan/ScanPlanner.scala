package org.metastore.spark.scan

import java.util.BitSet
import java.util.stream.IntStream

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Expression, InSet, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.{FilterRequest, JoinKeys, RelationColumns, RowCounts, ScanStatistics}
import org.metastore.spark.pruning.{
  ColumnResolver, DeletedRows, EvaluationAllowance, ExpressionColumns, FileMeasure, FileSets, FilterCompiler,
  LimitedFiles, LiveFiles, PruningFilter, ScanDecision, ScanEstimate, ScanQuestion, WantedRows
}
import org.metastore.spark.reason.{
  Indexed, PlanningTimeoutException, Reason, ReasonCode, Recoverable, VisibleText
}
import org.metastore.spark.statistics.{StatisticsStore, TableStatistics}
import org.metastore.spark.statistics.columns.{FileSetStatistics, LongBounds, TableDistinct}
import org.metastore.spark.statistics.objects.{DoubleOrder, TableIdentity}
import org.metastore.spark.statistics.values.ColumnHistogram

/** Decides which data files of the scans of one query are read. One decision is all that EXPLAIN, metrics and estimates say. */
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
    case PlanScope.Everything if settings.pruningEnabled => None
    case PlanScope.Everything =>
      Some(Reason(ReasonCode.Disabled, "setting" -> MetastoreConf.PruningEnabled.key))
  }

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

  /** @throws PlanningTimeoutException where it has */
  def requireTime(): Unit = if (isLate) throw new PlanningTimeoutException(settings.planningTimeoutMillis)

  /** Counts the time that a block takes against the planning timeout. */
  def countTime[A](block: => A): A = context.countTime(block)

  /** What a table's statistics know of its columns. */
  def columns(
      id: TableIdentity,
      known: TableStatistics,
      resolver: ColumnResolver,
      lineage: => Iterator[String]): RelationColumns = {
    lazy val described = DistributionSnapshot.choose(known.manifest, lineage)
    new RelationColumns(
      columnsOf(known, resolver),
      (key, dataType) => histogramsOf(id, known, described, Seq((key, dataType))).get((key, dataType)))
  }

  /** Whether nothing is done to the plan's scans but to say why. */
  def leavesAlone: Boolean = scope.isInstanceOf[PlanScope.NoChange]

  /** What equal scans of a query share. It must not refer to the scan: it is kept while the first of them is in use. */
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
    def left = context.remainingMillis(limit)
    val coming = context.countTime {
      val store = StatisticsStore.open(table, settings.store, context.hadoop(session))
      store.begin(table.uuid, left, limit, version, table.nameMapping)
    }
    lazy val found = context.countTime(coming(left))
      .left.map(why =>
        if (why.code == ReasonCode.NoStatistics) Reason(why.code, "table" -> table.inStatements)
        else why)
    () => found
  }

  /** Joins a scan's files with the statistics and asks the rules. Never throws. */
  def plan(
      table: TableIdentity,
      files: IndexedSeq[ScanFile],
      request: ScanRequest,
      resolver: ColumnResolver,
      live: LiveFiles,
      asked: Option[EstimateRequest] = None): ScanPlan = {
    import request.{conjuncts, wanted}
    val list = ScanFiles.listOf(files)
    val rows = rowsOf(files)
    def decision(
        rows: Array[Long],
        outcome: Either[Reason, ScanDecision.Verdict],
        distrusted: BitSet = new BitSet,
        version: String = "",
        estimate: () => Option[ScanEstimate] = () => None,
        limited: Option[LimitedFiles] = None,
        full: BitSet = new BitSet,
        topK: Option[Reason] = None) =
      new ScanDecision(
        table.name,
        list,
        rows,
        outcome,
        distrusted,
        version,
        ScanPlanner.filesWithChanges(files),
        live,
        estimate,
        limited,
        isJoined = request.isJoined,
        full = full,
        question = Some(ScanQuestion(table, conjuncts, resolver, wanted)),
        topK = topK)
    def decide(known: TableStatistics): ScanPlan = {
      requireTime()
      val compiled = compile(conjuncts, resolver, known)
      requireTime() // for conjuncts that are long
      val ordered =
        for (top <- wanted; by <- top.order) yield by.column.key -> by.column.dataType
      val joined = known.forFiles(list, if (restriction.isDefined) Nil else compiled.columnKeys ++ ordered)
      val distrusted = contradictoryFiles(joined, rows)
      val counted =
        IntStream.range(0, rows.length).mapToLong(i => if (rows(i) >= 0) rows(i) else joined.rows(i)).toArray
      val judged = judge(joined, compiled, isWhole = live.beyond(files.length) == 0 && !request.isJoined)
      lazy val unlimited = decision(counted, judged, distrusted)
      val matching = if (wanted.isEmpty) new BitSet else fullFiles(compiled, joined, files, unlimited)
      val full = FileSets.where(files.length)(i => matching.get(i) && files(i).deleted.isZero)
      val limited = wanted.flatMap(limitFiles(_, joined, unlimited, matching, files(_).deleted))
      val topK = if (limited.isDefined) None
      else wanted.flatMap(whyNoneIsLater(_, joined, unlimited, matching, files(_).deleted))
      val outcome = if (judged.isRight) judged
      else if (limited.isDefined) Right(verdictOf(joined, compiled))
      else topK.fold(judged)(Left(_))
      lazy val decided: ScanDecision =
        decision(counted, outcome, distrusted, known.fingerprint, () => numbers.summary, limited, full, topK)
      lazy val numbers: ScanStatistics =
        numbersOf(
          table,
          known,
          joined,
          decided,
          files,
          conjuncts,
          asked.getOrElse(EstimateRequest(Nil, resolver)))
      ScanPlanner.logDecision(decided)
      ScanPlan(
        decided,
        ScanPlanner.recover(s"The size of ${table.name}", Option.empty[ScanStatistics]) {
          requireTime()
          Some(numbers)
        })
    }
    try statistics(table).fold(
        why => ScanPlan(decision(rows, Left(why)), None),
        known => context.countTime(decide(known)))
    catch {
      case Recoverable(e) =>
        val why = Reason.failure(e)
        ScanPlanner.warn(table.name, why, e)
        ScanPlan(decision(rows, Left(why)), None)
    }
  }

  /** What an aggregate of a scan's rows is, where the statistics tell it of every file that may hold one; None elsewhere. */
  def measure(scanned: ScannedFiles, asked: AggregateRequest): Option[MeasuredScan] = for {
    known <- statistics(scanned.table).toOption
    measures <- asked.measures(scanned.resolver)
    measured <- context.countTime(measureFiles(scanned, asked, measures, known))
  } yield measured

  private def measureFiles(
      scanned: ScannedFiles,
      asked: AggregateRequest,
      measures: Seq[FileMeasure],
      known: TableStatistics): Option[MeasuredScan] = {
    requireTime()
    import asked.conjuncts
    import scanned.files
    val mayRead = scanned.areChosen && asked.isMergeable
    val filter = compile(conjuncts, scanned.resolver, known)
    val list = ScanFiles.listOf(files)
    val joined = known.forFiles(list, filter.columnKeys ++ measures.flatMap(_.columns))
    joined.load(measures.flatMap(_.columns))
    val verdict = verdictOf(joined, filter)
    val candidates = FileSets.where(files.length)(verdict.verdicts.isKept(_))
    candidates.and(matchingFiles(filter, joined, files))
    // What cannot be answered is not worth reading lists for.
    if (candidates.cardinality * (if (mayRead) 2 else 1) < verdict.verdicts.keptCount) None
    else {
      val measured = measures.map { measure =>
        requireTime()
        measure.compute(joined, candidates, files(_).deleted)
      }
      val answered = FileSets.where(files.length)(i => candidates.get(i) && measured.forall(_.isKnown(i)))
      val decision = new ScanDecision(
        scanned.table.name,
        list,
        joined.rows,
        Right(verdict),
        contradictoryFiles(joined, rowsOf(files)),
        known.fingerprint,
        ScanPlanner.filesWithChanges(files),
        scanned.live,
        answered = Some(answered),
        question = Some(ScanQuestion(scanned.table, conjuncts, scanned.resolver, None)))
      // Reading most of the files and planning twice would gain nothing.
      val isWorthIt = decision.after == 0 || mayRead && decision.after <= answered.cardinality &&
        !decision.survivors.intersects(decision.contradictoryFiles)
      lazy val others = Indexed.entries(decision.survivors.stream.toArray) { file =>
        file -> files(file).rows.getOrElse(joined.rows(file))
      }
      val totals = if (!isWorthIt) Nil
      else measured.flatMap(one =>
        if (decision.after == 0) one.total(answered).map(Seq(_))
        else one.parts(answered, others))
      if (totals.length < measured.length) None
      else {
        ScanPlanner.logDecision(decision)
        Some(MeasuredScan(totals.flatten, decision))
      }
    }
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

  private def rowsOf(files: IndexedSeq[ScanFile]): Array[Long] =
    IntStream.range(0, files.length).mapToLong(i => files(i).rows.getOrElse(-1L)).toArray

  private def numbersOf(
      table: TableIdentity,
      known: TableStatistics,
      joined: FileSetStatistics,
      decided: ScanDecision,
      files: IndexedSeq[ScanFile],
      conjuncts: Seq[Expression],
      asked: EstimateRequest): ScanStatistics = {
    val described = DistributionSnapshot.choose(known.manifest, asked.lineage())
    lazy val distinct = described.fold(Map.empty[String, TableDistinct])(distinctOf(known, _))
    val columns =
      expressionColumns(described.fold(Map.empty[String, String])(_.snapshot.expressions), asked.resolver)
    val filter = new FilterRequest(
      conjuncts,
      columns,
      histogramsOf(table, known, described, _),
      asked.output,
      joins,
      asked.isTaken)
    val counts = new RowCounts(decided, known.manifest.latest.flatMap(RowCounts.perByte))
    new ScanStatistics(
      joined,
      decided,
      files(_).partition,
      counts,
      files(_).deletedRows,
      distinct.get,
      filter,
      described.forall(_.isAncestor),
      described.exists(_.isRead))
  }

  // Where they cannot be read, bounds tell less.
  private def histogramsOf(
      table: TableIdentity,
      known: TableStatistics,
      described: Option[DistributionSnapshot],
      columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] =
    ScanPlanner.recover(s"A filter on ${table.name}", Map.empty[(String, DataType), ColumnHistogram]) {
      described.fold(Map.empty[(String, DataType), ColumnHistogram])(one =>
        known.histograms(one.snapshot, columns))
    }

  private def distinctOf(
      known: TableStatistics,
      described: DistributionSnapshot): Map[String, TableDistinct] =
    context.countTime(known.distinct(described.snapshot).getOrElse(Map.empty))

  // Where the format was asked for a part of the files, the scan has a filter, though none is left to us.
  private def judge(
      joined: FileSetStatistics,
      filter: PruningFilter,
      isWhole: Boolean): Either[Reason, ScanDecision.Verdict] =
    if (restriction.isDefined) Left(restriction.get)
    else if (filter.conjuncts.isEmpty && isWhole) Left(Reason(ReasonCode.NoFilter))
    else if (filter.conjuncts.nonEmpty && filter.columns.isEmpty) Left(Reason(ReasonCode.NothingToPrune))
    else Right(verdictOf(joined, filter))

  private def verdictOf(joined: FileSetStatistics, filter: PruningFilter): ScanDecision.Verdict =
    ScanDecision.Verdict(filter.evaluate(joined), filter.conjuncts.map(_.sql))

  private def fullFiles(
      filter: PruningFilter,
      joined: FileSetStatistics,
      files: IndexedSeq[ScanFile],
      unlimited: ScanDecision): BitSet =
    if (!isOurs(unlimited)) new BitSet
    else ScanPlanner.recover("The rows of matching files", new BitSet) {
      val matching = FileSets.both(matchingFiles(filter, joined, files), unlimited.survivors)
      if (filter.conjuncts.exists(ScanPlanner.namesZero)) matching.andNot(filesWithZeros(filter, joined))
      matching
    }

  // Readers of Parquet tell the zeros apart, and leave out rows of the one that is not named.
  private def filesWithZeros(filter: PruningFilter, joined: FileSetStatistics): BitSet = {
    val doubles = filter.columns.filter(use => use.dataType == FloatType || use.dataType == DoubleType)
    val bounds = doubles.map(use => joined.column(use.key, use.dataType).toOption.map(_.bounds))
    FileSets.where(joined.rows.length) { file =>
      bounds.exists {
        case Some(known: LongBounds) if known.hasLo(file) && known.hasHi(file) =>
          known.lo(file) <= DoubleOrder.Zero && known.hi(file) >= DoubleOrder.Zero
        case _ => true
      }
    }
  }

  private def limitFiles(
      wanted: WantedRows,
      joined: FileSetStatistics,
      unlimited: ScanDecision,
      matching: BitSet,
      deleted: Int => DeletedRows): Option[LimitedFiles] =
    if (!isOurs(unlimited)) None
    else ScanPlanner.recover("A LIMIT", Option.empty[LimitedFiles]) {
      LimitedFiles.by(wanted, joined, unlimited.survivors, unlimited.excludable, matching, deleted)
    }

  /** Why an ORDER BY with a LIMIT leaves none of the files out that are read. */
  private def whyNoneIsLater(
      wanted: WantedRows,
      joined: FileSetStatistics,
      unlimited: ScanDecision,
      matching: BitSet,
      deleted: Int => DeletedRows): Option[Reason] =
    if (!isOurs(unlimited) || unlimited.after < 2) None
    else ScanPlanner.recover("A LIMIT", Option.empty[Reason]) {
      wanted.order.map(order => LimitedFiles.whyNone(wanted.limit, order, joined, matching, deleted))
    }

  /**
   * The files of which every live row is proven to match, and of which it is known how many deletes take away. A format that counts
   * rows must count as many as the statistics.
   */
  private def matchingFiles(
      filter: PruningFilter,
      joined: FileSetStatistics,
      files: IndexedSeq[ScanFile]): BitSet = {
    val proven = filter.allRowsMatch(joined)
    FileSets.where(files.length) { i =>
      proven.get(i) && files(i).deleted.isKnown && !files(i).hasChanges && joined.rows(i) >= 0 &&
      files(i).rows.forall(_ == joined.rows(i))
    }
  }

  // A scan of which something else decides is left whole.
  private def isOurs(unlimited: ScanDecision): Boolean =
    unlimited.outcome.fold(_.code == ReasonCode.NoFilter, _ => true)

  // Other rows than the table format counts: the statistics are not of this file.
  private def contradictoryFiles(joined: FileSetStatistics, rows: Array[Long]): BitSet =
    FileSets.where(rows.length)(i => rows(i) >= 0 && joined.rows(i) >= 0 && rows(i) != joined.rows(i))
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

  private def namesZero(conjunct: Expression): Boolean = conjunct.exists {
    case Literal(value, _) => DoubleOrder.isZero(value)
    case InSet(_, values) => values.exists(DoubleOrder.isZero)
    case _ => false
  }

  /** What was decided, for who reads the log at INFO. */
  private def logDecision(decision: ScanDecision): Unit =
    logInfo(VisibleText(s"${decision.table} ${decision.label}"))

  /** The files whose rows other files change. */
  private def filesWithChanges(files: IndexedSeq[ScanFile]): BitSet =
    FileSets.where(files.length)(files(_).hasChanges)

  /** Whether a job of the query's own was cancelled: then the query is. */
  def isCancelled(e: Throwable): Boolean = Option(e.getMessage).exists(_.contains("SPARK_JOB_CANCELLED"))

  /** What fails in an estimate costs no more than the estimate. */
  def recover[A](about: String, instead: A)(estimate: => A): A =
    try estimate
    catch {
      case Recoverable(e) if !isCancelled(e) =>
        warn(about, Reason.failure(e), e)
        instead
    }

  /** Planning goes on without us: one line says why, which is nobody's concern once Spark has ended. */
  def warn(table: String, why: Reason, cause: Throwable): Unit = {
    val told = VisibleText(s"$table is planned without the Metastore: $why")
    if (SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).isDefined) logWarning(told)
    else logInfo(told)
    logDebug("The cause", cause)
  }
}

/** What was decided about a scan, and the numbers of the files that it reads, where there are statistics. */
private[scan] final case class ScanPlan(decision: ScanDecision, numbers: Option[ScanStatistics])

/**
 * What the measures of an aggregate are, and of which files.
 *
 * @param totals of each measure in their order; where files are read, of each of its parts
 * @param rest   what reads the other files, and those alone
 */
private[scan] final case class MeasuredScan(
    totals: Seq[Any],
    decision: ScanDecision,
    rest: Option[LogicalPlan] = None) {

  /** With what reads the files that are not answered; None where they cannot be read alone. */
  def reading(rest: => Option[LogicalPlan]): Option[MeasuredScan] =
    if (decision.after == 0) Some(this)
    else rest.map(plan => copy(rest = Some(plan)))
}
