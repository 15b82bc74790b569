package org.metastore.spark.adapter

import java.util.{BitSet, Locale}

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.MetastoreConf
import org.metastore.spark.explain.{ReasonCode, ScanDecision}
import org.metastore.spark.pruning.ColumnResolver
import org.metastore.spark.store.Manifest
import org.metastore.spark.tables.{HudiTable, LakeTable, Leaf, ParquetDirectory}

/**
 * A Hudi table as of one instant: one data file, the base file, for each file slice.
 *
 * Rows of a slice with log files are not just those of its base file: such slices are always read.
 */
private[adapter] final class HudiScan private (relation: HadoopFsRelation, label: Option[String]) extends FileTable {

  override val root: Path = HudiTable.root(relation)
  override val id: TableId = TableId("hudi", ParquetDirectory.uuidOf(root), root.toString, label.getOrElse(s"hudi.`$root`"))

  private val partitionColumns = HudiTable.partitionColumns(relation.location).map(_.toLowerCase(Locale.ROOT)).toSet

  /** Why no file may be dropped, whatever the statistics say. */
  def refusal: Option[String] = HudiTable.refusal(relation)

  /**
   * Columns by name, Hudi's own among them. Unknown are those whose values Spark takes from a partition's path: they need not
   * be those in the file.
   */
  override def resolver(statistics: Manifest): ColumnResolver = new StoredColumns(relation.partitionSchema.fieldNames)

  override def estimated(statistics: Manifest): ColumnResolver = new StoredColumns(Array.empty)

  private final class StoredColumns(unknown: Array[String]) extends ColumnResolver {
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
  def listed(index: FileIndex, partitionFilters: Seq[Expression]): HudiListing = {
    val found = HudiListing.of(index, partitionFilters) {
      val directories = index.listFiles(partitionFilters, Nil)
      new HudiListing(directories, new DataFiles(filesIn(directories)))
    }
    shared = Some(found)
    found
  }

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[DataFile] =
    shared.filter(_.directories eq listed).fold(filesIn(listed))(_.files)

  private def filesIn(listed: Seq[PartitionDirectory]): IndexedSeq[DataFile] = listed.toIndexedSeq.flatMap { partition =>
    val slices = HudiScan.slices(partition.values)
    partition.files.map { file =>
      val base = slices.flatMap(_.baseOf(file.getPath))
      val path = base.fold(file.getPath)(_.path)
      DataFile(LakeTable.pathInTable(path, root), base.fold(file.getLen)(_.size), None, changed = slices.isDefined)
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
      val all = listed(index, partitionFilters).directories
      val untold = if (dataFilters.isEmpty) new BitSet else HudiScan.untold(decide(all), statistics, dataFilters)
      if (untold.isEmpty) all
      else {
        val left = index.listFiles(partitionFilters, dataFilters).flatMap(_.files).map(_.getPath).toSet
        val paths = all.iterator.flatMap(_.files).map(_.getPath).toIndexedSeq
        FileTable.some(all)(file => !untold.get(file) || left(paths(file)))
      }
    }

  /** Conjuncts by which Hudi itself chooses partitions. */
  def partitionFilters(conjuncts: Seq[Expression]): Seq[Expression] =
    FileTable.over(partitionColumns, conjuncts)
}

private[adapter] object HudiScan {

  /** Columns that Hudi stores with each row, and lets Spark hide as if they were made when a file is read. */
  private val stored = Set("commit_time", "commit_seqno", "record_key", "partition_path", "file_name", "operation").map("_hoodie_" + _)

  private val Mapping = "org.apache.hudi.HoodiePartitionFileSliceMapping"

  /** The Hudi table behind a relation, unless it reads changes. */
  def of(relation: HadoopFsRelation, label: Option[String]): Option[HudiScan] =
    if (HudiTable.is(relation)) Some(new HudiScan(relation, label)) else None

  /** The slices with log files, or with rows in a second place, that a partition's directory stands for; None: it has none. */
  private def slices(values: InternalRow): Option[Slices] =
    if (Reflection.interfaces(values.getClass).exists(_.getName == Mapping)) Some(new Slices(values)) else None

  private final case class Base(path: Path, size: Long)

  private final class Slices(mapping: AnyRef) {

    /** The base file of the slice that a listed file stands for: what Hudi lists has a size that it estimates. */
    def baseOf(listed: Path): Option[Base] = Try {
      val fileId = listed.getName.stripPrefix(".").takeWhile(_ != '_')
      val slice = Reflection.call(mapping, "getSlice", classOf[String], fileId).asInstanceOf[Option[AnyRef]]
      slice.flatMap(HudiTable.baseFile).map { base =>
        Base(new Path(Reflection.call(base, "getPath").toString), Reflection.call(base, "getFileSize").asInstanceOf[Long])
      }
    }.toOption.flatten
  }

  /** Files that are read because the statistics tell nothing of them that the filters ask. */
  private def untold(decision: ScanDecision, statistics: Manifest, filters: Seq[Expression]): BitSet = {
    val why = if (isAnalyzed(statistics, filters)) Set[ReasonCode](ReasonCode.KeptFileUnknown) else unknowns
    val set = new BitSet(decision.before)
    (0 until decision.before).filter(decision.kept.get).foreach(file => set.set(file, why(decision.reason(file).code)))
    set
  }

  private val unknowns = Set[ReasonCode](ReasonCode.KeptFileUnknown, ReasonCode.KeptColumnUnknown)

  /** Whether the statistics hold something, of whatever data files, of a column that a filter names. */
  private def isAnalyzed(statistics: Manifest, filters: Seq[Expression]): Boolean = {
    val named = filters.flatMap(_.references).map(_.name.toLowerCase(Locale.ROOT)).toSet
    statistics.pathsIgnoringCase.keysIterator.exists(path => named(path.head))
  }
}
