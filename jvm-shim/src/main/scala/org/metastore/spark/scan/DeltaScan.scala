package org.metastore.spark.scan

import scala.collection.mutable
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, EqualTo, EvalMode, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, DataType, TimestampType}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, DeletedRows, LiveFiles}
import org.metastore.spark.reason.{Indexed, Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.tables.{DeltaTable, FileRelation, LakeTable, ListedFileIndex, Reflection}

/** A Delta table at the version that a query reads, after Delta has chosen files itself. */
private[scan] final class DeltaScan private (override val relation: HadoopFsRelation, label: Option[String])
  extends FileScan {
  private val table = DeltaTable.fromIndex(relation.location)

  override val root: Path = new Path(table.location)
  override val id: TableIdentity = {
    val name = FileScan.nameOf(DeltaTable.name, root, label)
    TableIdentity(DeltaTable.name, table.uuid, table.location, name, ownFiles = table.ownFiles)
  }

  // The relation's schema does not know the physical names, the snapshot's does.
  private lazy val schema = table.schema(None)

  override def resolver(statistics: Manifest): ColumnResolver = {
    val isSameName = SQLConf.get.resolver
    (root, path) => DeltaTable.key(schema, root.name +: path, isSameName)
  }

  // Until Delta has added its filter of deleted rows, it must find its own index in the relation.
  override def restriction(settings: MetastoreConf): Option[Reason] =
    if (command.isEmpty && !settings.pruneInsideWrites && DeltaCommand.isInsideWrite(relation))
      Some(Reason(ReasonCode.InsideWrite))
    else FileScan.conversionRefusal(relation)

  override def command: Option[RowLevelPruning] = DeltaCommand.markOf(relation)

  override def hidesDeletedRows(filter: Expression): Boolean = filter match {
    case EqualTo(column: Attribute, Literal(0, _)) => column.name == DeltaScan.IsDeleted
    case _ => false
  }

  override def countedFiles(
      read: HadoopFsRelation,
      conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]] = Some(deltaFiles)

  override def lineage: Iterator[String] = table.current.iterator.flatMap(table.lineage)

  override def live(index: FileIndex, name: Option[TableIdentifier]): LiveFiles =
    if (command.isDefined) LiveFiles.Unknown else filesOfSnapshot

  private def filesOfSnapshot: LiveFiles = {
    def rowsByPath = table.currentFiles.map(file => file.path -> file.rows)
    new LiveFiles("Delta", Try(countFiles).getOrElse(None), () => rowsByPath)
  }

  private def countFiles: Option[Long] = {
    val total = Reflection.call[AnyRef](scan, "total")
    Reflection.call[Option[Any]](total, "files").map(_.toString.toLong)
  }

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    for (file <- ListedFileIndex.filesOf(listed))
      yield ScanFile(LakeTable.pathInTable(file.getPath, root), file.getLen, None)

  override def countRows(files: IndexedSeq[ScanFile]): IndexedSeq[ScanFile] = {
    val filesWithRows = Indexed.by(deltaFiles)(file => (file.path, file.size))
    files.map(file => filesWithRows.getOrElse((file.path, file.size), file))
  }

  // Listeners do not recognize a scan in which a command finds its files.
  override def recognizable(index: FileIndex): FileIndex =
    if (command.isDefined) index else IndexStandIn.create(index, relation.location)

  private def scan: AnyRef = Reflection.call[AnyRef](relation.location, "preparedScan")

  private def chosenFiles: scala.collection.Seq[AnyRef] =
    if (command.isDefined) Reflection.call[scala.collection.Seq[AnyRef]](relation.location, "addFiles")
    else Reflection.call[scala.collection.Seq[AnyRef]](scan, "files")

  /** The files that Delta has chosen for the query. */
  private def deltaFiles: IndexedSeq[ScanFile] =
    table.files(chosenFiles).toIndexedSeq.map { file =>
      ScanFile(
        file.path,
        file.size,
        file.rows,
        file.deletedRows.map(_.toDouble),
        deleted = file.deletedRows.fold(DeletedRows.Unknown)(DeletedRows.exactly),
        partition = partitionOf(file.partition))
    }

  private lazy val partitionColumns: Seq[DeltaScan.PartitionColumn] = for {
    name <- table.partitionColumns
    field <- schema.fields if field.name == name && DeltaScan.isPlain(field.dataType)
    key <- DeltaTable.key(schema, Seq(name), _ == _)
  } yield DeltaScan.PartitionColumn(name, key, field.dataType)

  private val literals = mutable.HashMap.empty[(String, String), Option[Literal]] // files share them

  private def partitionOf(texts: Map[String, String]): Map[String, Literal] = {
    val values = for {
      column <- partitionColumns
      text <- texts.get(column.name)
      literal <- literals.getOrElseUpdate((column.name, text), DeltaScan.literal(text, column.dataType))
    } yield column.key -> literal
    values.toMap
  }
}

private[scan] object DeltaScan extends ScanFormat {
  private val Prepared = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex"
  private val Unprepared = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
  private val IsDeleted = "__delta_internal_is_row_deleted"
  private val PreparingRule = "org.apache.spark.sql.delta.stats.PrepareDeltaScan"

  /** A partition column whose values in the log can be read. */
  private final case class PartitionColumn(name: String, key: String, dataType: DataType)

  /** Whether all writers write values of a type into the log in the same form. */
  private def isPlain(dataType: DataType): Boolean = dataType != TimestampType && dataType != BinaryType

  /** Parses the value of a partition column from its text in the log; an empty text is null. */
  private def literal(text: String, dataType: DataType): Option[Literal] =
    if (text == null || text.isEmpty) Some(Literal(null, dataType))
    else {
      val cast = Cast(Literal(text), dataType, Some(SQLConf.get.sessionLocalTimeZone), EvalMode.TRY)
      Option(cast.eval()).map(Literal(_, dataType))
    }

  /** Finds the Delta table behind a relation, if Delta has chosen its files. */
  override def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    Optional.when(isPinned(relation) || DeltaCommand.markOf(relation).isDefined)(new DeltaScan(
      relation,
      label))

  override def isCommandQuery(query: LogicalPlan): Boolean = DeltaCommand.isCommandQuery(query)
  override def isPinned(relation: HadoopFsRelation): Boolean = relation.location.getClass.getName == Prepared
  override def countsRows(expression: Expression): Boolean = DeltaCommand.countsRows(expression)

  override def prepareRelations(plan: LogicalPlan, session: SparkSession): LogicalPlan =
    DeltaCommand.mark(chooseFiles(plan, session), session)

  // Delta's own rule then has nothing to do.
  private def chooseFiles(plan: LogicalPlan, session: SparkSession): LogicalPlan =
    if (plan.isInstanceOf[Subquery] || !plan.exists(isUnprepared)) plan
    else {
      val rule = session.sessionState.optimizer.preCBORules.find(_.getClass.getName == PreparingRule)
      rule.fold(plan)(_.apply(plan))
    }

  private def isUnprepared(plan: LogicalPlan): Boolean =
    FileRelation.unapply(plan).exists(_.location.getClass.getName == Unprepared)
}
