package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types.{DoubleType, FloatType}

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Indexed
import org.metastore.spark.tables.Reflection

/** How the files of one Iceberg scan are decided on again, by what the keys of a join say of its columns. */
private[scan] final class IcebergJoin(
    output: Seq[AttributeReference],
    decide: Seq[Expression] => ScanDecision) {

  /** Nothing is known yet. */
  def begin(planning: ScanDecision): JoinedTasks = new JoinedTasks(planning.beforeJoin.getOrElse(decide(Nil)))

  /** What a joined scan reads. Spark tells the filters once the other side's keys are there. */
  final class JoinedTasks(planning: ScanDecision) {
    @volatile private var found = Option.empty[ScanDecision]
    @volatile private var left = Option.empty[Set[String]] // by Iceberg
    private var keys = Seq.empty[Expression]
    private var named = IndexedSeq.empty[(Expression, AttributeReference)]

    def decision: ScanDecision = found.getOrElse(planning)

    /** The column by which Spark tells of an expression: a scan hears of columns alone. */
    def nameOf(key: Expression): Attribute = synchronized {
      named.collectFirst { case (known, name) if known.semanticEquals(key) => name }.getOrElse {
        val name = AttributeReference(IcebergJoin.unusedName(output, named.size), key.dataType)()
        named :+= key -> name
        name
      }
    }

    /**
     * Takes filters in; those that are Iceberg's own business, on the columns that it partitions by, are forwarded, too, but for
     * doubles, of which Iceberg takes no NaN and tells the zeros apart. The scan, which others read by as well, keeps its tasks.
     */
    def filter(scan: AnyRef, filters: Array[Predicate])(forward: Array[Predicate] => AnyRef): AnyRef = {
      val own =
        Indexed.set(Reflection.call[Array[NamedReference]](scan, "filterAttributes"))(_.fieldNames.toSeq)
      val theirs = filters.filter(one =>
        one.references.forall(column => own(column.fieldNames.toSeq)) && !isOfDoubles(one))
      if (theirs.nonEmpty) ScanPlanner.recover(planning.table, ())(filterByFormat(scan)(forward(theirs)))
      ScanPlanner.recover(planning.table, ()) {
        keys ++= filters.flatMap(conjunct)
        found = Some(decide(keys))
      }
      null
    }

    private def filterByFormat(scan: AnyRef)(forward: => AnyRef): Unit = scan.synchronized {
      val all = IcebergTasks.currentTasks(scan)
      try {
        forward
        val paths = IcebergTasks.currentTasks(scan).paths
        left = Some(left.fold(paths)(_ intersect paths))
      } finally all.giveTo(scan)
    }

    /** The tasks that are left of a scan's. */
    def tasks(scan: AnyRef): IcebergTasks = {
      val current = IcebergTasks.currentTasks(scan)
      val all = left.fold(current)(current.selectPaths)
      found.fold(all)(known => all.selectPaths(known.survivingPaths))
    }

    /** A batch of these tasks. Other parts of the plan may read by the same scan, so that it gets its own back. */
    def batchOf(scan: AnyRef)(batch: => AnyRef): AnyRef = scan.synchronized {
      val all = IcebergTasks.currentTasks(scan)
      val left = ScanPlanner.recover(planning.table, all)(tasks(scan))
      if (left.tasks.size == all.tasks.size) batch
      else {
        left.giveTo(scan)
        try batch
        finally all.giveTo(scan)
      }
    }

    private def conjunct(filter: Predicate): Option[Expression] = filter.children.toSeq match {
      case Seq(column: NamedReference, values @ _*)
          if filter.name == "IN" && values.forall(_.isInstanceOf[Literal[_]]) =>
        keyOf(column.fieldNames.toSeq)
          .flatMap(JoinKeyFilter.conjunct(_, values.map(_.asInstanceOf[Literal[_]].value: Any).toArray))
      case _ => None
    }

    private def isOfDoubles(filter: Predicate): Boolean = filter.children.exists {
      case value: Literal[_] => value.dataType == DoubleType || value.dataType == FloatType
      case _ => false
    }

    private def keyOf(name: Seq[String]): Option[Expression] =
      named.collectFirst { case (key, column) if Seq(column.name) == name => key }.orElse(output.find(
        column => Seq(column.name) == name))
  }
}

private object IcebergJoin {

  /** A name of no column of a table. */
  private def unusedName(output: Seq[AttributeReference], place: Int): String =
    Iterator.iterate(s"metastore_key_$place")(_ + "_").find(name =>
      !output.exists(_.name.equalsIgnoreCase(name))).get
}
