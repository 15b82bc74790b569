package org.metastore.spark.adapter

import java.util.{BitSet, Locale}

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.MetastoreConf
import org.metastore.spark.explain.{LiveFiles, ReasonCode, ScanDecision}
import org.metastore.spark.pruning.ColumnResolver
import org.metastore.spark.store.Manifest
import org.metastore.spark.tables.{HudiTable, LakeTable, Leaf, ParquetTable, Reflection, FormatReleases}

/**
 * A Hudi table as of one instant: one data file, the base file, for each file slice.
 *
 * Rows of a slice with log files are not just those of its base file: such slices are always read.
 */
private[adapter] final class HudiScan private (relation: HadoopFsRelation, label: Option[String]) extends FileScan {

  override val root: Path = HudiTable.root(relation)
  override val id: TableId = TableId("hudi", ParquetTable.uuidOf(root), root.toString, label.getOrElse(s"hudi.`$root`"))

  private val partitionColumns = HudiTable.partitionColumns(relation.location).map(_.toLowerCase(Locale.ROOT)).toSet

  /** Why no file may be dropped, whatever the statistics say. */
  def refusal: Option[String] = HudiTable.refusal(relation)

  /**
   * Columns by name, Hudi's own among them. Unknown are those whose values Spark takes from a partition's path: they need not
   * be those in the file.
   */
  override def resolver(statistics: Manifest): ColumnResolver = new FileColumns(relation.partitionSchema.fieldNames)

  override def estimateResolver(statistics: Manifest): ColumnResolver = new FileColumns(Array.empty)

  private final class FileColumns(unknown: Array[String]) extends ColumnResolver {
    private val same = SQLConf.get.resolver

    override def key(root: Attribute, path: Seq[String]): Option[String] = {
      val name = root.name +: path
      leaves.getOrElse(name.map(_.toLowerCase(Locale.ROOT)), Nil).filter(_.path.corresponds(name)(same)) match {
        case Seq(only) if !unknown.exists(same(_, root.name)) => Some(only.key)
        case _ => None
      }
    }

    override def isMetadata(root: Attribute): Boolean = !HudiScan.stored(root.name) && super.isMetadata(root)
  }

  private lazy val leaves: Map[Seq[String], Seq[Leaf]] =
    HudiTable.leaves(relation.schema).groupBy(_.path.map(_.toLowerCase(Locale.ROOT)))

  @volatile private var shared = Option.empty[HudiListing]

  /** What the index lists without Hudi's own skipping. */
  def listSlices(index: FileIndex, partitionFilters: Seq[Expression]): HudiListing = {
    val found = HudiListing.of(index, partitionFilters) {
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

  override def live(index: FileIndex): LiveFiles =
    new LiveFiles("Hudi", HudiTable.filesInMemory(index), () => files(index.listFiles(Nil, Nil)).map(file => file.path -> file.rows))

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    shared.filter(_.directories eq listed).fold(filesIn(listed))(_.files)

  private def filesIn(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] = listed.toIndexedSeq.flatMap { partition =>
    partition.files.map { file =>
      val slice = HudiScan.slice(partition.values, file.getPath)
      val base = slice.map(_.base).getOrElse(Some(HudiScan.Base(file.getPath, file.getLen)))
      val (path, size) = base.fold(file.getPath -> file.getLen)(known => known.path -> known.size)
      ScanFile(LakeTable.pathInTable(path, root), size, None, deletedRows = if (slice.isDefined) None else Some(0), hasChanges = slice.isDefined)
    }
  }

  /**
   * Without Hudi's own skipping, which in Hudi 1.2.0 loses rows. It is asked only about data files, none of them with log
   * files, of which our statistics tell nothing: that they do not know, or any where a filter names no column that was
   * analyzed. Beside a column that was, none of the others is left to Hudi: what it makes of one loses the rows of all.
   */
  override def list(index: FileIndex, statistics: Manifest, partitionFilters: Seq[Expression], dataFilters: Seq[Expression])(
      decide: Seq[PartitionDirectory] => ScanDecision): Seq[PartitionDirectory] =
    if (!MetastoreConf().hudiBypassSkipping) super.list(index, statistics, partitionFilters, dataFilters)(decide)
    else {
      val all = listSlices(index, partitionFilters).directories
      val untold = if (dataFilters.isEmpty) new BitSet else HudiScan.unknownFiles(decide(all), statistics, dataFilters)
      if (untold.isEmpty) all
      else {
        val left = index.listFiles(partitionFilters, dataFilters).flatMap(_.files).map(_.getPath).toSet
        val paths = all.iterator.flatMap(_.files).map(_.getPath).toIndexedSeq
        FileScan.selectFiles(all)(file => !untold.get(file) || left(paths(file)))
      }
    }

  /** Conjuncts by which Hudi itself chooses partitions. */
  def partitionFilters(conjuncts: Seq[Expression]): Seq[Expression] =
    FileScan.conjunctsOver(partitionColumns, conjuncts)
}

private[adapter] object HudiScan {

  /** Columns that Hudi stores with each row, and lets Spark hide as if they were made when a file is read. */
  private val stored = Set("commit_time", "commit_seqno", "record_key", "partition_path", "file_name", "operation").map("_hoodie_" + _)

  private val PlainRows = "org.apache.spark.sql.catalyst.expressions."
  private val FileNames = "org.apache.hudi.common.fs.FSUtils"

  /** The Hudi table behind a relation, unless it reads changes. */
  def of(relation: HadoopFsRelation, label: Option[String]): Option[HudiScan] =
    if (HudiTable.is(relation)) {
      FormatReleases.require(relation.location)
      Some(new HudiScan(relation, label))
    } else None

  /** A base file as its slice knows it: what Hudi lists of a slice with log files has a size that it estimates. */
  private final case class Base(path: Path, size: Long)

  /** A slice whose rows are not just those of its base file; `base` where it is known. */
  private final case class Slice(base: Option[Base])

  /**
   * The slice with log files, or with rows in a second place, that a listed file stands for; None where the file is all that is
   * read. Hudi tells by what it puts where a partition's values are: of its own class, one for each slice or, before 1.1, one
   * for a partition, which its reader asks for the slices. Of whatever is not understood the file is read.
   */
  private def slice(values: InternalRow, listed: Path): Option[Slice] =
    if (listed.getName.startsWith(".")) Some(Slice(None))
    else if (values.getClass.getName.startsWith(PlainRows)) None
    else Try(sliceOf(values, listed)).getOrElse(Some(Slice(None)))

  private def sliceOf(mapping: AnyRef, listed: Path): Option[Slice] = {
    val fileId = Reflection.load(FileNames, mapping.getClass.getClassLoader).getMethod("getFileId", classOf[String]).invoke(null, listed.getName)
    Reflection.option[AnyRef](Reflection.call[AnyRef](mapping, "getSlice", fileId)).map { slice =>
      Slice(HudiTable.baseFile(slice).map { base =>
        Base(new Path(Reflection.call[String](base, "getPath")), Reflection.call[Long](base, "getFileSize"))
      })
    }
  }

  /** Files that are read because the statistics tell nothing of them that the filters ask. */
  private def unknownFiles(decision: ScanDecision, statistics: Manifest, filters: Seq[Expression]): BitSet = {
    val why = if (isAnalyzed(statistics, filters)) Set[ReasonCode](ReasonCode.KeptFileUnknown) else unknowns
    val set = new BitSet(decision.before)
    (0 until decision.before).filter(decision.survivors.get).foreach(file => set.set(file, why(decision.reason(file).code)))
    set
  }

  private val unknowns = Set[ReasonCode](ReasonCode.KeptFileUnknown, ReasonCode.KeptColumnUnknown)

  /** Whether the statistics hold something, of whatever data files, of a column that a filter names. */
  private def isAnalyzed(statistics: Manifest, filters: Seq[Expression]): Boolean = {
    val named = filters.flatMap(_.references).map(_.name.toLowerCase(Locale.ROOT)).toSet
    statistics.pathsIgnoringCase.keysIterator.exists(path => named(path.head))
  }
}
