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
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.tables.{FormatReleases, HudiTable, LakeTable, Leaf, Reflection}

/** A Hudi table as of one instant: one data file, the base file, for each file slice. */
private[scan] final class HudiScan private (override val relation: HadoopFsRelation, label: Option[String])
  extends FileScan {

  override val root: Path = HudiTable.root(relation)
  override val id: TableIdentity =
    TableIdentity(
      HudiTable.name,
      LakeTable.uuidOf(root),
      root.toString,
      label.getOrElse(s"${HudiTable.name}.`$root`"))

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

  /** Hudi's own columns are among them. */
  override def resolver(statistics: Manifest): ColumnResolver =
    new FileColumns(relation.partitionSchema.fieldNames)

  override def estimateResolver(statistics: Manifest): ColumnResolver = new FileColumns(Array.empty)

  private final class FileColumns(unknown: Array[String]) extends ColumnResolver {
    private val same = SQLConf.get.resolver

    override def key(root: Attribute, path: Seq[String]): Option[String] = {
      val name = root.name +: path
      val sameIgnoringCase = leaves.getOrElse(name.map(_.toLowerCase(Locale.ROOT)), Nil)
      sameIgnoringCase.filter(_.path.corresponds(name)(same)) match {
        case Seq(only) if !unknown.exists(same(_, root.name)) => Some(only.key)
        case _ => None
      }
    }

    override def isMetadata(root: Attribute): Boolean = !HudiScan.stored(root.name) && super.isMetadata(root)
  }

  private lazy val leaves: Map[Seq[String], Seq[Leaf]] =
    HudiTable.leaves(relation).groupBy(_.path.map(_.toLowerCase(Locale.ROOT)))

  @volatile private var shared = Option.empty[HudiListing]

  override def listWhole(
      index: FileIndex,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    listSlices(index, partitionFilters).directories

  /** What the index lists without Hudi's own skipping. */
  private def listSlices(index: FileIndex, partitionFilters: Seq[Expression]): HudiListing = {
    val found = HudiListing.findOrList(index, partitionFilters) {
      val directories = index.listFiles(partitionFilters, Nil)
      new HudiListing(directories, new ScanFiles(filesIn(directories)))
    }
    shared = Some(found)
    found
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

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] = shared match {
    case Some(listing) if listing.directories eq listed => listing.files
    case _ => filesIn(listed)
  }

  private def filesIn(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    for {
      partition <- listed.toIndexedSeq
      file <- partition.files
    } yield {
      val slice = HudiScan.slice(partition.values, file.getPath)
      val base = slice.flatMap(_.base).getOrElse(HudiScan.Base(file.getPath, file.getLen))
      ScanFile(
        LakeTable.pathInTable(base.path, root),
        base.size,
        None,
        deletedRows = if (slice.isDefined) None else Some(0),
        hasChanges = slice.isDefined,
        deleted = if (slice.isEmpty) DeletedRows.Zero else DeletedRows.Unknown)
    }

  /** Without Hudi's own skipping, which in Hudi 1.2.0 loses rows. */
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
      val untold =
        if (dataFilters.isEmpty) new BitSet
        else HudiScan.unknownFiles(decide(all), statistics, dataFilters)
      if (untold.isEmpty) all
      else {
        val remaining = HudiScan.pathsOf(index.listFiles(partitionFilters, dataFilters)).toSet
        val paths = HudiScan.pathsOf(all)
        FileScan.selectFiles(all)(file => !untold.get(file) || remaining(paths(file)))
      }
    }
}

private[scan] object HudiScan extends ScanFormat {

  /** Columns that Hudi stores with each row, and lets Spark hide as if they were made when a file is read. */
  private val stored = Set(
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "_hoodie_operation")

  private val PlainRows = "org.apache.spark.sql.catalyst.expressions."
  private val FileNames = "org.apache.hudi.common.fs.FSUtils"

  /** The Hudi table behind a relation, unless it reads changes. */
  override def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    if (HudiTable.is(relation)) {
      FormatReleases.require(relation.location)
      Some(new HudiScan(relation, label))
    } else None

  /** A base file as its slice knows it: what Hudi lists of a slice with log files has a size that it estimates. */
  private final case class Base(path: Path, size: Long)

  /** A slice whose rows are not just those of its base file; `base` where it is known. */
  private final case class Slice(base: Option[Base])

  /** The slice with log files, or with rows in a second place, that a listed file stands for. */
  private def slice(values: InternalRow, listed: Path): Option[Slice] =
    if (listed.getName.startsWith(".")) Some(Slice(None))
    else if (values.getClass.getName.startsWith(PlainRows)) None
    else Try(sliceOf(values, listed)).getOrElse(Some(Slice(None)))

  private def sliceOf(mapping: AnyRef, listed: Path): Option[Slice] = {
    val fileNames = Reflection.load(FileNames, mapping.getClass.getClassLoader)
    val fileId = Reflection.callStatic[String](fileNames, "getFileId", listed.getName)
    val slice = Reflection.option[AnyRef](Reflection.call[AnyRef](mapping, "getSlice", fileId))
    slice.map(found => Slice(HudiTable.baseFile(found).map(baseOf)))
  }

  private def baseOf(file: AnyRef): Base =
    Base(new Path(Reflection.call[String](file, "getPath")), Reflection.call[Long](file, "getFileSize"))

  private def pathsOf(listed: Seq[PartitionDirectory]): IndexedSeq[Path] =
    for {
      directory <- listed.toIndexedSeq
      file <- directory.files
    } yield file.getPath

  /** Files that are read because the statistics tell nothing of them that the filters ask. */
  private def unknownFiles(decision: ScanDecision, statistics: Manifest, filters: Seq[Expression]): BitSet = {
    val why = if (isAnalyzed(statistics, filters)) Set[ReasonCode](ReasonCode.KeptFileUnknown) else unknowns
    FileSets.where(decision.before)(file => decision.survivors.get(file) && why(decision.reason(file).code))
  }

  private val unknowns = Set[ReasonCode](ReasonCode.KeptFileUnknown, ReasonCode.KeptColumnUnknown)

  /** Whether the statistics hold something, of whatever data files, of a column that a filter names. */
  private def isAnalyzed(statistics: Manifest, filters: Seq[Expression]): Boolean = {
    val named = Indexed.set(filters.flatMap(_.references))(_.name.toLowerCase(Locale.ROOT))
    statistics.pathsIgnoringCase.keysIterator.exists(path => named(path.head))
  }

  private val packages = Seq("org.apache.spark.sql.hudi.command.", "org.apache.hudi.")

  /** Hudi's commands read their target by queries of their own, whose plans do not show what they are for: the stack does. */
  private def hudiQuery: Option[Reason] = {
    val callers = Thread.currentThread.getStackTrace.map(_.getClassName)
    val caller = callers.find(name => packages.exists(name.startsWith))
    caller.map(name =>
      Reason(ReasonCode.RowLevelCommand, "command" -> name.split('.').last.takeWhile(_ != '$')))
  }
}

/** What a file index of Hudi lists, and the data files in it. */
private[scan] final class HudiListing(
    val directories: Seq[PartitionDirectory],
    val files: IndexedSeq[ScanFile])

/** Listings that are kept. */
private[scan] object HudiListing {
  private val Kept = 32
  private val BytesOfFile = 1100L // its path alone, as Hadoop holds it, has 400
  private val counter = new AtomicLong

  /** What decides, beside an index, what it lists: values of partitions are read in the session's time zone. */
  private final case class ListingKey(filters: Set[Expression], zone: String, caseSensitive: Boolean)

  /** Where in the cache a listing is. */
  private final class Entry(index: FileIndex, slices: AnyRef, by: ListingKey) {
    private val (ofIndex, ofSlices) = (new WeakReference(index), new WeakReference(slices))
    private val key = s"listing:${counter.incrementAndGet()}"

    def is(index: FileIndex, slices: AnyRef, asked: ListingKey): Boolean =
      (ofIndex.get eq index) && (ofSlices.get eq slices) && by == asked

    def isLost: Boolean = ofIndex.get == null || ofSlices.get == null

    def listing: Option[HudiListing] = StatisticsCache.get[HudiListing](key)
    def keep(listing: HudiListing): Unit =
      StatisticsCache.put(key, listing, listing.files.length * BytesOfFile)
    def forget(): Unit = StatisticsCache.remove(key)
  }

  private var entries = Vector.empty[Entry]

  /** The listing of the partitions that satisfy filters: the one that is kept, or that which `list` makes. */
  def findOrList(index: FileIndex, partitionFilters: Seq[Expression])(list: => HudiListing): HudiListing =
    HudiTable.slicesInMemory(index) match {
      case Some(slices) if partitionFilters.forall(isFixed) =>
        val asked = ListingKey(
          Indexed.set(partitionFilters)(named),
          SQLConf.get.sessionLocalTimeZone,
          SQLConf.get.caseSensitiveAnalysis)
        val entry = entryOf(index, slices, asked)
        entry.listing.getOrElse {
          val made = list
          if (HudiTable.slicesInMemory(index).exists(_ eq slices)) entry.keep(made)
          made
        }
      case _ => list
    }

  private def entryOf(index: FileIndex, slices: AnyRef, asked: ListingKey): Entry = synchronized {
    entries.find(_.is(index, slices, asked)).getOrElse {
      val entry = new Entry(index, slices, asked)
      val (lost, others) = entries.partition(_.isLost)
      (lost ++ others.drop(Kept - 1)).foreach(_.forget())
      entries = entry +: others.take(Kept - 1)
      entry
    }
  }

  private def isFixed(filter: Expression): Boolean =
    filter.deterministic && filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty

  // Each query gives columns other ids.
  private def named(filter: Expression): Expression = filter.transform {
    case column: AttributeReference => column.withExprId(ExprId(0)).withQualifier(Nil)
  }
}
