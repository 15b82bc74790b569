package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DoubleType, FloatType}

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.tables.Reflection

/** Decides again on the files of one Iceberg scan, by the keys of a join, when the query runs. */
private[scan] final class IcebergJoin(
    output: Seq[AttributeReference],
    decide: Seq[Expression] => ScanDecision) {
  import IcebergJoin.KeyName

  // A filter at run time spells a column as the query does, possibly in another case than the table.
  private val resolver = SQLConf.get.resolver

  /** The tasks before any keys are known. */
  def begin(planning: ScanDecision): JoinedTasks = new JoinedTasks(planning.beforeJoin.getOrElse(decide(Nil)))

  /** The tasks of a joined scan. Spark passes the filters once the other side's keys are collected. */
  final class JoinedTasks(planning: ScanDecision) {
    @volatile private var decisionByKeys = Option.empty[ScanDecision]
    @volatile private var pathsByFormat = Option.empty[Set[String]]
    private var keys = Seq.empty[Expression]
    private var names = IndexedSeq.empty[KeyName]

    def decision: ScanDecision = decisionByKeys.getOrElse(planning)

    /** The column that stands for an expression in Spark's filters: a scan gets filters of columns alone. */
    def nameOf(key: Expression): Attribute = synchronized {
      names.find(_.key.semanticEquals(key)) match {
        case Some(name) => name.column
        case None =>
          val column = AttributeReference(IcebergJoin.unusedName(output, names.size), key.dataType)()
          names :+= KeyName(key, column)
          column
      }
    }

    /**
     * Applies filters. Iceberg also gets those over its partition columns. It gets none over doubles, because
     * it ignores NaN and distinguishes the zeros. Other parts of the plan share the scan: it keeps its tasks.
     */
    def filter(scan: AnyRef, filters: Array[Predicate])(forward: Array[Predicate] => AnyRef): AnyRef = {
      val partitionColumns = Reflection.call[Array[NamedReference]](scan, "filterAttributes")
      def isPartitionColumn(column: NamedReference): Boolean =
        columnOf(column.fieldNames.head).exists { root =>
          partitionColumns.exists(_.fieldNames.toSeq == root.name +: column.fieldNames.toSeq.tail)
        }
      def isForFormat(filter: Predicate): Boolean =
        filter.children.length <= IcebergJoin.MaxValuesForFormat && filter.references.forall(
          isPartitionColumn) &&
          !hasDoubles(filter)
      val forFormat = filters.filter(isForFormat)
      if (forFormat.nonEmpty)
        ScanPlanner.recover(planning.table, ())(filterByFormat(scan)(forward(forFormat)))
      ScanPlanner.recover(planning.table, ()) {
        keys = (keys ++ filters.flatMap(toConjunct(_))).distinct
        decisionByKeys = Some(decide(keys))
      }
      null
    }

    private def filterByFormat(scan: AnyRef)(forward: => AnyRef): Unit = scan.synchronized {
      val all = IcebergTasks.currentTasks(scan)
      try {
        forward
        val paths = IcebergTasks.currentTasks(scan).paths
        pathsByFormat = Some(pathsByFormat.fold(paths)(_ intersect paths))
      } finally all.giveTo(scan)
    }

    /** The tasks of a scan that neither Iceberg nor the keys exclude. */
    def tasks(scan: AnyRef): IcebergTasks = {
      val current = IcebergTasks.currentTasks(scan)
      val remaining = pathsByFormat.fold(current)(current.selectPaths)
      decisionByKeys.fold(remaining)(decision => remaining.selectPaths(decision.survivingPaths))
    }

    /** Makes the batch of the remaining tasks. The scan, which may be shared, gets its own tasks back. */
    def batchOf(scan: AnyRef)(batch: => AnyRef): AnyRef = scan.synchronized {
      val all = IcebergTasks.currentTasks(scan)
      val remaining = ScanPlanner.recover(planning.table, all)(tasks(scan))
      if (remaining.tasks.size == all.tasks.size) batch
      else {
        remaining.giveTo(scan)
        try batch
        finally all.giveTo(scan)
      }
    }

    private def toConjunct(filter: Predicate): Option[Expression] = filter.children.toSeq match {
      case Seq(column: NamedReference, values @ _*)
          if filter.name == "IN" && values.forall(_.isInstanceOf[Literal[_]]) =>
        for {
          key <- keyOf(column.fieldNames)
          conjunct <- JoinKeyFilter.conjunct(key, values.map(_.asInstanceOf[Literal[_]].value: Any).toArray)
        } yield conjunct
      case _ => None
    }

    private def hasDoubles(filter: Predicate): Boolean = filter.children.exists {
      case value: Literal[_] => value.dataType == DoubleType || value.dataType == FloatType
      case _ => false
    }

    private def keyOf(name: Array[String]): Option[Expression] = name match {
      case Array(single) => names.find(_.column.name == single).map(_.key).orElse(columnOf(single))
      case _ => None
    }

    /** The column of this name, or None if two names differ only in case: one would choose wrong files. */
    private def columnOf(name: String): Option[AttributeReference] =
      output.filter(column => resolver(column.name, name)) match {
        case Seq(only) => Some(only)
        case _ => None
      }
  }
}

private object IcebergJoin {
  private val MaxValuesForFormat = 10000 // Iceberg prints all values wherever it names the scan

  /** The column that stands for a key. */
  private final case class KeyName(key: Expression, column: AttributeReference)

  private def unusedName(output: Seq[AttributeReference], number: Int): String = {
    var name = s"metastore_key_$number"
    while (output.exists(_.name.equalsIgnoreCase(name))) name += "_"
    name
  }
}
