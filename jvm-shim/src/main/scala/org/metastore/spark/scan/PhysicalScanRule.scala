package org.metastore.spark.scan

import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.{
  And, AttributeReference, BoundReference, Expression, FileSourceConstantMetadataAttribute, PlanExpression,
  Predicate
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{
  FileFormat, FileIndex, HadoopFsRelation, PartitionDirectory
}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.types.StructType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ScanDecision, WantedRows}
import org.metastore.spark.reason.{Reason, Recoverable}
import org.metastore.spark.statistics.objects.Manifest
import org.metastore.spark.tables.ParquetTable

/**
 * Drops files from the physical scans of marked file relations, and writes the decision on them. It runs where adaptive
 * execution prepares its first plan, so that EXPLAIN shows it, and for all other plans as a columnar rule; twice is harmless.
 */
final class PhysicalScanRule(session: SparkSession) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    ScanPlanner.orElse("A query", plan) {
      JoinKeyFilter.moveToScans(plan).transformUp {
        case scan: FileSourceScanExec => withKeys(JoinKeyFilter.bind(marked(scan, planner).getOrElse(scan)))
        case scan: BatchScanExec => JoinKeyFilter.bind(scan)
      }
    }
  }

  /** The same plan with files dropped from its scans; filters by join keys are left to the rule itself. */
  private[scan] def prune(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    plan.transformUp { case scan: FileSourceScanExec => marked(scan, planner).getOrElse(scan) }
  }

  /** The scan with an index that knows what the scan's own filters collect. */
  private def withKeys(scan: FileSourceScanExec): FileSourceScanExec =
    (IndexStandIn.behind(scan.relation.location), JoinKeyFilter.valuesOf(scan)) match {
      case (index: PruningFileIndex, keys) if keys != index.keys =>
        withRelation(scan, index.withKeys(keys).recognizable)
      case _ => scan
    }

  private def withRelation(scan: FileSourceScanExec, location: FileIndex): FileSourceScanExec =
    WithTags(
      CaseClassCopy(scan, "relation" -> scan.relation.copy(location = location)(scan.relation.sparkSession)),
      scan)

  private def marked(scan: FileSourceScanExec, planner: => ScanPlanner): Option[FileSourceScanExec] =
    try scan.relation.location match {
        case _ if isDone(scan) => None
        case fixed: FixedFileIndex =>
          val location = FileScan.recognizable(fixed, scan.relation)
          Some(withLabel(
            scan,
            scan.relation.copy(location = location)(scan.relation.sparkSession),
            fixed.decision.label))
        case _ => ScanMark.of(scan.relation).flatMap {
            case ScanMark.Refusal(_, why) => Some(withLabel(scan, scan.relation, s"[Metastore: $why]"))
            case allowed: ScanMark.Permit => pruned(scan, allowed, planner)
          }
      }
    catch {
      case Recoverable(e) =>
        ScanPlanner.warn(scan.nodeName, Reason.failure(e), e)
        None
    }

  private def pruned(
      scan: FileSourceScanExec,
      allowed: ScanMark.Permit,
      planner: ScanPlanner): Option[FileSourceScanExec] = {
    val relation = scan.relation
    FileScan.at(relation, allowed.root, scan.tableIdentifier.map(_.unquotedString)).map { table =>
      planner.statistics(table.id, Some(allowed.fingerprint)) match {
        case Right(known) if known.fingerprint == allowed.fingerprint =>
          val wanted = allowed.wanted.filter(_ =>
            (scan.partitionFilters ++ scan.dataFilters).forall(PruningFileIndex.isFixed))
          val index = new PruningFileIndex(
            relation.location,
            table,
            scan.tableIdentifier,
            known.manifest,
            wanted,
            planner)
          val decision = index.decision(scan)
          withLabel(scan, relation.copy(location = index.recognizable)(relation.sparkSession), decision.label)
        case Right(_) =>
          withLabel(scan, relation, "[Metastore: the statistics changed while the query was planned]")
        case Left(why) => withLabel(scan, relation, s"[Metastore: ${why.sentence}]")
      }
    }
  }

  private def withLabel(
      scan: FileSourceScanExec,
      relation: HadoopFsRelation,
      label: String): FileSourceScanExec = {
    val named = scan.tableIdentifier.getOrElse(TableIdentifier(
      relation.location.rootPaths.head.toString,
      Some(formatOf(scan.relation))))
    val labelled = named.copy(table = s"${named.table} $label")
    WithTags(CaseClassCopy(scan, "relation" -> relation, "tableIdentifier" -> Some(labelled)), scan)
  }

  private def formatOf(relation: HadoopFsRelation): String =
    FileScan.ofFormatWithLog(relation, None).fold(ParquetTable.name)(_.id.format)

  private def isDone(scan: FileSourceScanExec): Boolean =
    IndexStandIn.behind(scan.relation.location).isInstanceOf[PruningFileIndex] || scan.tableIdentifier.exists(
      _.table.contains(PhysicalScanRule.Label))
}

private[scan] object PhysicalScanRule {
  private val Label = " [Metastore: "

  /** The name of a scan's table, without what was written behind it. */
  def tableOf(scan: FileSourceScanExec): String = scan.tableIdentifier match {
    case Some(TableIdentifier(name, format, _)) if withoutLabel(name).contains('/') =>
      s"${format.fold("")(_ + ".")}`${withoutLabel(name)}`"
    case Some(named) => named.copy(table = withoutLabel(named.table)).unquotedString
    case None => scan.relation.location.rootPaths.mkString(", ")
  }

  private def withoutLabel(name: String): String =
    if (name.contains(Label)) name.substring(0, name.indexOf(Label)) else name
}

/** The same rule for plans that adaptive execution does not touch. */
final class PhysicalScanColumnarRule(session: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new PhysicalScanRule(session)
}

/** The files of a physical scan without those in which no row can match, or is wanted. Everything else is the delegate's. */
private[scan] final class PruningFileIndex(
    val delegate: FileIndex,
    table: FileScan,
    name: Option[TableIdentifier],
    statistics: Manifest,
    val wanted: Option[WantedRows],
    planner: ScanPlanner,
    val keys: Seq[JoinKeyValues] = Nil)
  extends FileIndex {
  import PruningFileIndex.isFixed

  private val resolver = table.resolver(statistics)

  private def fingerprint: String = statistics.fingerprint

  // A scan is listed for EXPLAIN and again when it runs, with the same filters.
  private val decided =
    new ConcurrentHashMap[
      (Seq[Expression], Seq[Expression], ScanRequest),
      (Seq[PartitionDirectory], ScanDecision)]

  /** The same files, and what sub-queries collect about them. */
  def withKeys(found: Seq[JoinKeyValues]): PruningFileIndex =
    new PruningFileIndex(delegate, table, name, statistics, wanted, planner, found)

  /** The same index as listeners of the table format recognise it. */
  def recognizable: FileIndex = table.recognizable(this)

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = delegate.inputFiles
  override def sizeInBytes: Long = delegate.sizeInBytes
  override def partitionSchema: StructType = delegate.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = delegate.metadataOpsTimeNs

  override def refresh(): Unit = {
    decided.clear()
    delegate.refresh()
  }

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val fixed = dataFilters.filter(isFixed)
    // With keys of a join all is decided anew, while the query runs already.
    val chosen = ScanPlanner.orElse(s"A scan of ${table.id.name}", Option.empty[Seq[PartitionDirectory]]) {
      val (listed, decision) = decide(partitionFilters, fixed, request(fixed, keys.nonEmpty))
      Some(FileScan.selectFiles(listed)(decision.survivors.get))
    }
    chosen.getOrElse(delegate.listFiles(partitionFilters, dataFilters))
  }

  /** What is decided for these filters; those that need a sub-query's answer choose among the partitions later. */
  def decision(scan: FileSourceScanExec): ScanDecision = {
    val fixed = scan.dataFilters.filter(isFixed)
    decide(scan.partitionFilters.filter(isFixed), fixed, request(fixed, JoinKeyFilter.isIn(scan)))._2
  }

  private def request(fixed: Seq[Expression], isJoined: Boolean) =
    ScanRequest(fixed.filterNot(table.hidesDeletedRows) ++ keys.flatMap(_.conjunct), wanted, isJoined)

  // Every partition filter goes to the delegate: nothing above the scan repeats it.
  private def decide(
      partitionFilters: Seq[Expression],
      data: Seq[Expression],
      request: ScanRequest): (Seq[PartitionDirectory], ScanDecision) =
    decided.computeIfAbsent(
      (partitionFilters, data, request),
      _ => {
        var last = Option.empty[(Seq[PartitionDirectory], ScanDecision)]
        def about(listed: Seq[PartitionDirectory]) =
          last.collect { case (same, known) if same eq listed => known }.getOrElse {
            val files =
              if (request.wanted.isEmpty) table.files(listed) else table.countRows(table.files(listed))
            def plan(files: IndexedSeq[ScanFile]) =
              planner.plan(table.id, files, request, resolver, table.live(delegate, name)).decision
            val first = plan(files)
            // Of a LIMIT, the rows of files that are read are counted on too.
            val relied =
              if (request.wanted.isEmpty) FileScan.selectFiles(listed)(!first.survivors.get(_)) else listed
            val now = if (first.after < first.before) table.asNow(files, relied) else files
            val made = if (now eq files) first else plan(now)
            last = Some(listed -> made)
            made
          }
        val listed = FilePathFilter.by(data, table.list(delegate, statistics, partitionFilters, data)(about))
        (listed, about(listed))
      })

  override def equals(other: Any): Boolean = other match {
    case that: PruningFileIndex =>
      that.delegate == delegate && that.fingerprint == fingerprint && that.wanted == wanted
    case _ => false
  }

  override def hashCode: Int = 31 * delegate.hashCode + (fingerprint, wanted).hashCode
}

private[scan] object PruningFileIndex {

  // Spark shows filters with sub-queries at one time and not at another.
  def isFixed(filter: Expression): Boolean = filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty
}

/** Leaves out the data files that a query itself excludes by `_metadata.file_path`: Delta's own index lists them all. */
private[scan] object FilePathFilter {

  def by(filters: Seq[Expression], listed: Seq[PartitionDirectory]): Seq[PartitionDirectory] = {
    val ofPaths = filters.filter(f => f.deterministic && f.references.nonEmpty && f.references.forall(isPath))
    if (ofPaths.isEmpty) listed
    else Try {
      val predicate = Predicate.createInterpreted(ofPaths.map(bound).reduce(And(_, _)))
      listed.map(partition =>
        partition.copy(files = partition.files.filter { file =>
          predicate.eval(FileFormat.createMetadataInternalRow(
            InternalRow.empty,
            Seq(FileFormat.FILE_PATH),
            SparkPath.fromPath(file.getPath),
            file.getLen,
            file.getModificationTime))
        }))
    }.getOrElse(listed) // the query says what is wrong with its filter
  }

  private def bound(filter: Expression): Expression = filter.transform {
    case path: AttributeReference => BoundReference(0, path.dataType, nullable = false)
  }

  private def isPath(column: Expression): Boolean = column match {
    case FileSourceConstantMetadataAttribute(path) => path.name == FileFormat.FILE_PATH
    case _ => false
  }
}
