package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo, Literal}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnLayout, ColumnResolver, PruningFilter}
import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSummary, FileList, FileSetStatistics}
import org.metastore.spark.tables.{Leaf, TableFormats}

/** `metastore.layout(table [, column])`: one row a column, how its values are spread over the data files and what would help. */
object LayoutFunction extends TableFunction("layout") {
  private val MostLookUps = 32 // a column
  private val AtOnce = 64 // columns
  private val WorthSorting = 2 // times as many files as a look-up of a sorted column reads

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.of(session, call.text("table"))
    val current = analyzed.table.current
    val snapshot = analyzed.snapshotWithColumns(current)
    val all = analyzed.table.leaves(current)
    val leaves = call.optional("column").fold(all)(name => IndexedSeq(analyzed.leaf(session, name, all)))
    val distinct = analyzed.store.tableSummary(snapshot).flatMap(row => row.distinct.map(snapshot.columns(row.column).key -> _)).toMap
    val files = FileList.of(analyzed.liveFiles(snapshot).map(_.key).toIndexedSeq)
    val statistics = analyzed.planning(MetastoreConf().readTimeoutMillis)
    leaves.grouped(AtOnce).flatMap { some =>
      val known = statistics.of(files, some.map(leaf => leaf.key -> leaf.dataType))
      some.map(leaf => row(leaf, known, distinct.get(leaf.key), SortAdvice.of(session, analyzed)))
    }.toSeq
  }

  private def row(leaf: Leaf, files: FileSetStatistics, distinct: Option[Long], sort: Leaf => Option[String]): InternalRow = {
    val summary = files.column(leaf.key, leaf.dataType).toOption
    val layout = summary.flatMap(ColumnLayout.of)
    val analyzed = summary.toSeq.flatMap(known => (0 until known.length).filter(known.hasStatistics))
    val perLookUp = summary.filter(_ => layout.isDefined).flatMap(filesPerLookUp(leaf, files, _, analyzed))
    val advice = for {
      read <- perLookUp
      if read >= WorthSorting * sortedFilesPerLookUp(analyzed.size, distinct) && !layout.exists(_.sortedShare == 1)
      statement <- sort(leaf)
    } yield statement
    ResultRow.row(leaf.name, perLookUp, layout.map(_.overlapDepth), layout.map(_.sortedShare), advice)
  }

  /** How many analyzed files may hold one of the values with which files begin, by all that is known of them; the mean of some. */
  private def filesPerLookUp(leaf: Leaf, files: FileSetStatistics, summary: ColumnSummary, analyzed: Seq[Int]): Option[Double] = {
    val attribute = AttributeReference(leaf.name, leaf.dataType)()
    val resolver: ColumnResolver = (_, _) => Some(leaf.key)
    val read = ColumnLayout.sample(summary, MostLookUps).map { file =>
      val value = Literal(CatalystValue.ordered(summary.bounds.los, file, leaf.dataType), leaf.dataType)
      analyzed.count(PruningFilter.compile(Seq(EqualTo(attribute, value)), resolver).evaluate(files).isKept)
    }
    if (read.isEmpty) None else Some(read.sum.toDouble / read.size)
  }

  /** Where a column has fewer values than there are files, each value fills several even in order. */
  private def sortedFilesPerLookUp(files: Int, distinct: Option[Long]): Double =
    math.max(1.0, files.toDouble / math.max(1L, distinct.getOrElse(1L)))
}

/** The statement that rewrites a table in the order of a column, as its format has it. */
private object SortAdvice {
  private val Plain = "[A-Za-z_][A-Za-z0-9_]*".r

  def of(session: SparkSession, analyzed: TableContext)(leaf: Leaf): Option[String] =
    TableFormats.all.find(_.name == analyzed.table.format).flatMap(_.sortStatement).filter(_ => leaf.path.length == 1).flatMap {
      statement =>
        val catalogs = session.sessionState.catalogManager
        val parts = scala.util.Try(session.sessionState.sqlParser.parseMultipartIdentifier(analyzed.name)).getOrElse(Nil)
        val isPath = TableFormats.isLocation(analyzed.name)
        val catalog =
          parts.headOption.filter(one => parts.length > 2 && catalogs.isCatalogRegistered(one)).getOrElse(catalogs.currentCatalog.name)
        if (isPath) None
        else Some(statement.replace("{catalog}", catalog).replace("{table}", analyzed.name).replace("{column}", quoted(leaf.path.head)))
    }

  private def quoted(name: String): String = name match {
    case Plain() => name
    case _ => s"`${name.replace("`", "``")}`"
  }
}
