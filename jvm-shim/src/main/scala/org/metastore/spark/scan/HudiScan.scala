package org.metastore.spark.scan

import java.lang.ref.WeakReference
import java.util.{BitSet, Locale}
import java.util.concurrent.atomic.AtomicLong

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, Expression, ExprId, PlanExpression
}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, DeletedRows, FileSets, LiveFiles, ScanDecision}
import org.metastore.spark.reason.{Indexed, Reason, ReasonCode}
import org.metastore.spark.statistics.cache.StatisticsCache
import org.metastore.spark.statistics.objects.{ColumnEntry, Manifest, TableIdentity}
import org.metastore.spark.tables.{
  FormatReleases, HudiLogFiles, HudiTable, LakeTable, Leaf, ListedFileIndex, Reflection
}

/** A Hudi table at one instant. Each file slice has one data file, its base file. */
private[scan] final class HudiScan private (override val relation: HadoopFsRelation, label: Option[String])
  extends FileScan {

  override val root: Path = HudiTable.root(relation)
  override val id: TableIdentity =
    TableIdentity(
      HudiTable.name,
      LakeTable.uuidOf(root),
      root.toString,
      FileScan.nameOf(HudiTable.name, root, label))

  private val partitionColumns =
    Indexed.set(HudiTable.partitionColumns(relation.location))(_.toLowerCase(Locale.ROOT))

  override def restriction(settings: MetastoreConf): Option[Reason] =
    HudiScan.hudiQuery
      .orElse(HudiTable.refusal(relation).map(FileScan.refuse))
      .orElse(FileScan.conversionRefusal(relation))

  override def countedFiles(
      read: HadoopFsRelation,
      conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]] =
    Some(listSlices(read.location, FileScan.conjunctsOver(partitionColumns, conjuncts)).files)

  override def resolver(statistics: Manifest): ColumnResolver =
    new FileColumns(relation.partitionSchema.fieldNames)

  override def estimateResolver(statistics: Manifest): ColumnResolver = new FileColumns(Array.empty)

  /** Finds the columns of the files, with Hudi's own; the `unknown` ones have no statistics. */
  private final class FileColumns(unknown: Array[String]) extends ColumnResolver {
    private val isSameName = SQLConf.get.resolver

    override def key(root: Attribute, path: Seq[String]): Option[String] = {
      val name = root.name +: path
      val sameIgnoringCase = leaves.getOrElse(ColumnEntry.lowerCase(name), Nil)
      sameIgnoringCase.filter(_.path.corresponds(name)(isSameName)) match {
        case Seq(only) if !unknown.exists(isSameName(_, root.name)) => Some(only.key)
        case _ => None
      }
    }

    override def isMetadata(root: Attribute): Boolean = !HudiScan.stored(root.name) && super.isMetadata(root)
  }

  private lazy val leaves: Map[Seq[String], Seq[Leaf]] =
    HudiTable.leaves(relation).groupBy(leaf => ColumnEntry.lowerCase(leaf.path))

  @volatile private var last: HudiListing = HudiListing.Empty

  override def listWhole(
      index: FileIndex,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    listSlices(index, partitionFilters).directories

  /** Lists an index without Hudi's own skipping. */
  private def listSlices(index: FileIndex, partitionFilters: Seq[Expression]): HudiListing = {
    last = HudiListing.findOrList(index, partitionFilters) {
      val directories = index.listFiles(partitionFilters, Nil)
      new HudiListing(directories, new ScanFiles(filesIn(directories)))
    }
    last
  }

  override def lineage: Iterator[String] = {
    val table = HudiTable(relation)
    table.current.iterator.flatMap(table.lineage)
  }

  override def live(index: FileIndex, name: Option[TableIdentifier]): LiveFiles =
    new LiveFiles(
      "Hudi",
      HudiTable.filesInMemory(index),
      () => ScanFile.rowsByPath(files(index.listFiles(Nil, Nil))))

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] = {
    val listing = last
    if (listing.directories eq listed) listing.files else filesIn(listed)
  }

  private def filesIn(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    for {
      partition <- listed.toIndexedSeq
      file <- partition.files
    } yield slice(partition.values, file.getPath) match {
      case Some(HudiScan.Slice(Some(base), version @ Some(_))) => wholeFile(base, version)
      case Some(HudiScan.Slice(base, _)) =>
        changedFile(base.getOrElse(HudiScan.Base(file.getPath, file.getLen)))
      case None => wholeFile(HudiScan.Base(file.getPath, file.getLen), None)
    }

  /** The file of a slice whose statistics, if there are some, describe all of its rows. */
  private def wholeFile(base: HudiScan.Base, version: Option[Long]): ScanFile =
    ScanFile(
      LakeTable.pathInTable(base.path, root),
      base.size,
      None,
      modified = version,
      deleted = DeletedRows.Zero)

  /** The file of a slice that has other rows than those of its base file. */
  private def changedFile(base: HudiScan.Base): ScanFile =
    ScanFile(
      LakeTable.pathInTable(base.path, root),
      base.size,
      None,
      deletedRows = None,
      hasChanges = true,
      deleted = DeletedRows.Unknown)

  private lazy val logFiles = new HudiLogFiles(relation)

  /** The slice behind a listed file, if it has log files or rows elsewhere. */
  private def slice(values: InternalRow, listed: Path): Option[HudiScan.Slice] =
    if (listed.getName.startsWith(".")) Some(HudiScan.UnknownSlice)
    else Try(HudiLogFiles.sliceOf(values, listed).map(describe)).getOrElse(Some(HudiScan.UnknownSlice))

  private def describe(slice: AnyRef): HudiScan.Slice =
    HudiScan.Slice(HudiTable.baseFile(slice).map(HudiScan.baseOf), logFiles.version(slice))

  /** Lists without Hudi's own skipping, which in Hudi 1.2.0 loses rows. */
  override def list(
      index: FileIndex,
      statistics: Manifest,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression])(
      decide: Seq[PartitionDirectory] => ScanDecision): Seq[PartitionDirectory] =
    if (!MetastoreConf().hudiBypassSkipping)
      super.list(index, statistics, partitionFilters, dataFilters)(decide)
    else {
      val all = listSlices(index, partitionFilters).directories
      val unknown =
        if (dataFilters.isEmpty) new BitSet
        else HudiScan.unknownFiles(decide(all), statistics, dataFilters)
      if (unknown.isEmpty) all
      else {
        val filesByHudi =
          Indexed.set(ListedFileIndex.filesOf(index.listFiles(partitionFilters, dataFilters)))(_.getPath)
        val files = ListedFileIndex.filesOf(all)
        FileScan.selectFiles(all)(file => !unknown.get(file) || filesByHudi(files(file).getPath))
      }
    }
}

private[scan] object HudiScan extends ScanFormat {

  /** Columns that Hudi stores with each row. Spark hides them like columns that a file source computes. */
  private val stored = Set(
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "_hoodie_operation")

  /** Finds the Hudi table behind a relation, unless it reads changes. */
  override def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    if (HudiTable.is(relation)) {
      FormatReleases.require(relation.location)
      Some(new HudiScan(relation, label))
    } else None

  /** A base file with its true size: Hudi lists an estimate for a slice with log files. */
  private final case class Base(path: Path, size: Long)

  /** A slice with log files, and the version of its rows, if they have one. */
  private final case class Slice(base: Option[Base], version: Option[Long])
  private val UnknownSlice = Slice(None, None)

  private def baseOf(file: AnyRef): Base =
    Base(new Path(Reflection.call[String](file, "getPath")), Reflection.call[Long](file, "getFileSize"))

  /**
   * The files that are read because they have no statistics for the columns of the filters. Slices with log
   * files are none of them: Hudi's skipping may lose their rows. These have a version, or a reason of their
   * own.
   */
  private def unknownFiles(decision: ScanDecision, statistics: Manifest, filters: Seq[Expression]): BitSet = {
    val reasons = if (isAnalyzed(statistics, filters)) unknownFile else unknownFileOrColumn
    FileSets.where(decision.before) { file =>
      decision.survivors.get(file) && decision.files.modifiedAt(file) < 0 &&
      reasons(decision.reason(file).code)
    }
  }

  private val unknownFile = Set[ReasonCode](ReasonCode.KeptFileUnknown)
  private val unknownFileOrColumn = unknownFile + ReasonCode.KeptColumnUnknown

  /** Whether a column that a filter names has statistics in any data file. */
  private def isAnalyzed(statistics: Manifest, filters: Seq[Expression]): Boolean = {
    val named = Indexed.set(filters.flatMap(_.references))(_.name.toLowerCase(Locale.ROOT))
    statistics.pathsIgnoringCase.keysIterator.exists(path => named(path.head))
  }

  private val packages = Seq("org.apache.spark.sql.hudi.command.", "org.apache.hudi.")

  // Hudi's commands read their target by separate queries. Only the stack shows the command, not the plan.
  private def hudiQuery: Option[Reason] = {
    val callers = Thread.currentThread.getStackTrace.map(_.getClassName)
    for (caller <- callers.find(name => packages.exists(name.startsWith))) yield {
      val command = caller.split('.').last.takeWhile(_ != '$')
      Reason(ReasonCode.RowLevelCommand, "command" -> command)
    }
  }
}

/** A listing of a Hudi file index, and the data files in it. */
private[scan] final class HudiListing(
    val directories: Seq[PartitionDirectory],
    val files: IndexedSeq[ScanFile])

/** Keeps listings for later queries. */
private[scan] object HudiListing {
  val Empty: HudiListing = new HudiListing(Nil, Vector.empty)

  private val MaxEntries = 32
  private val BytesOfFile = 1100L // its path alone, as Hadoop holds it, has 400
  private val counter = new AtomicLong

  /** The settings that a listing depends on: partition values are read in the session's time zone. */
  private final case class ListingKey(filters: Set[Expression], zone: String, caseSensitive: Boolean)

  /** A listing in the cache. */
  private final class Entry(index: FileIndex, slices: AnyRef, listingKey: ListingKey) {
    private val indexReference = new WeakReference(index)
    private val slicesReference = new WeakReference(slices)
    private val key = s"listing:${counter.incrementAndGet()}"

    def is(otherIndex: FileIndex, otherSlices: AnyRef, otherKey: ListingKey): Boolean =
      (indexReference.get eq otherIndex) && (slicesReference.get eq otherSlices) && listingKey == otherKey

    def isLost: Boolean = indexReference.get == null || slicesReference.get == null

    def listing: Option[HudiListing] = StatisticsCache.get[HudiListing](key)
    def keep(listing: HudiListing): Unit =
      StatisticsCache.put(key, listing, listing.files.length * BytesOfFile)
    def forget(): Unit = StatisticsCache.remove(key)
  }

  private var entries = Vector.empty[Entry]

  /** Finds the cached listing of the partitions that satisfy filters, or lists them. */
  def findOrList(index: FileIndex, partitionFilters: Seq[Expression])(list: => HudiListing): HudiListing =
    HudiTable.slicesInMemory(index) match {
      case Some(slices) if partitionFilters.forall(isFixed) =>
        val key = ListingKey(
          Indexed.set(partitionFilters)(withoutIds),
          SQLConf.get.sessionLocalTimeZone,
          SQLConf.get.caseSensitiveAnalysis)
        val entry = entryOf(index, slices, key)
        entry.listing.getOrElse {
          val listing = list
          if (HudiTable.slicesInMemory(index).exists(_ eq slices)) entry.keep(listing)
          listing
        }
      case _ => list
    }

  private def entryOf(index: FileIndex, slices: AnyRef, key: ListingKey): Entry = synchronized {
    entries.find(_.is(index, slices, key)).getOrElse(addEntry(new Entry(index, slices, key)))
  }

  private def addEntry(entry: Entry): Entry = {
    val (lost, current) = entries.partition(_.isLost)
    val (newest, oldest) = current.splitAt(MaxEntries - 1)
    for (dropped <- lost ++ oldest) dropped.forget()
    entries = entry +: newest
    entry
  }

  private def isFixed(filter: Expression): Boolean =
    filter.deterministic && filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty

  // Each query gives the columns new ids.
  private def withoutIds(filter: Expression): Expression = filter.transform {
    case column: AttributeReference => column.withExprId(ExprId(0)).withQualifier(Nil)
  }
}
