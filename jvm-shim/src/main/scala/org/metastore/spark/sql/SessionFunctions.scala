package org.metastore.spark.sql

import java.util.{Locale, Properties}

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}

import org.metastore.spark.conf.{MetastoreConf, Setting}
import org.metastore.spark.contract.Contract
import org.metastore.spark.explain.{ExplainQuery, OperatorEstimate, PruningHistory}
import org.metastore.spark.reason.{MetastoreException, NearNames, Optional, SqlName}
import org.metastore.spark.tables.{
  FileConstants, FileFacts, FormatReleases, LakeTable, Leaf, SnapshotFacts, TableHandle, TableLookup
}

/** `metastore.explain(query)`: one row for each scan and data file. */
object ExplainFunction extends TableFunction("explain") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    ExplainQuery.decisions(session, call.text("query")).map { file =>
      ResultRow.row(
        file.scan,
        Optional.when(file.table.nonEmpty)(file.table),
        file.path,
        file.kept,
        file.reason,
        file.conjunct,
        file.statistic,
        file.rows,
        file.estimate.map(_.rows),
        file.estimate.map(_.source),
        file.estimate.map(_.isExact),
        file.sentence)
    }
}

/** `metastore.estimates(query)`: one row for each operator of the optimized plan. */
object EstimatesFunction extends TableFunction("estimates") {
  private val Run = "analyze"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = answer(session, call)()

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] =
    Optional.when(call.flag(Run))(answer(session, call))

  private def answer(session: SparkSession, call: Arguments): () => Seq[InternalRow] = {
    val estimates = OperatorEstimate.fromQuery(session, call.text("query"), call.flag(Run))
    () => estimates().map(row)
  }

  private def row(estimate: OperatorEstimate): InternalRow =
    ResultRow.row(
      estimate.operator,
      estimate.parent,
      estimate.name,
      estimate.detail,
      estimate.rows.map(ResultRow.decimalOf),
      ResultRow.decimalOf(estimate.bytes),
      estimate.scan.map(_.rows),
      estimate.scan.map(_.source),
      estimate.scan.map(_.isExact),
      estimate.countedRows,
      estimate.qError)
}

/** `metastore.history([table])`: one row for each scan of a query that ran. */
object HistoryFunction extends TableFunction("history") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    PruningHistory.list(session, call.optional("table")).map { scan =>
      ResultRow.row(
        scan.endedMillis * 1000,
        scan.table,
        scan.files,
        scan.filesRead,
        scan.bytesSkipped,
        scan.planningMillis,
        ResultRow.counts(scan.reasons))
    }
}

/** `metastore.settings()`: one row for each setting. */
object SettingsFunction extends TableFunction("settings") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val conf = MetastoreConf.fromSession(session)
    val names = MetastoreConf.all.map(_.key)
    val inSession =
      for ((key, text) <- conf.unknownKeys.toSeq.sorted)
        yield unknownRow(key, text, "spark", NearNames.phraseSuggestion(key, names, "spark.metastore."))
    val inEnvironment =
      for ((name, text, source, hint) <- MetastoreConf.findMisspelt(sys.env))
        yield unknownRow(name, text, source, hint)
    MetastoreConf.all.map(row(conf, _)) ++ inSession ++ inEnvironment
  }

  private def row(conf: MetastoreConf, setting: Setting[_]): InternalRow =
    conf.findInvalid(setting) match {
      case Some(wrong) =>
        val problem =
          s"'${wrong.text}' (${wrong.source}) is no value of this setting: the default is in force"
        ResultRow.row(setting.key, setting.default, "default", setting.default, setting.meaning, problem)
      case None =>
        val value = conf.resolve(setting)
        ResultRow.row(setting.key, value.text, value.source, setting.default, setting.meaning, None)
    }

  private def unknownRow(name: String, text: String, source: String, hint: String): InternalRow =
    ResultRow.row(name, text, source, None, None, s"there is no such setting.$hint")
}

/** `metastore.help()`: one row for each table function. */
final class HelpFunction(functions: => Seq[TableFunction]) extends TableFunction("help") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    functions.map { function =>
      val (required, optional) = function.arguments.partition(_.required)
      val arguments = required.map(_.name).mkString(", ") + optional.map { argument =>
        if (argument == function.arguments.head) s"[${argument.name}]"
        else s" [, ${argument.name}]"
      }.mkString
      ResultRow.row(
        s"metastore.${function.name}",
        arguments,
        function.schema.fieldNames.mkString(", "),
        function.meaning)
    }
}

/** `metastore.version()`: one row with the versions of the shim, Spark, Scala and the format. */
object VersionFunction extends TableFunction("version") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val jar = Option(getClass.getProtectionDomain.getCodeSource).map(_.getLocation.getPath)
    Seq(ResultRow.row(
      build.getProperty("version"),
      session.version,
      scala.util.Properties.versionNumberString,
      Contract.limit("format_version").toInt,
      jar))
  }

  private lazy val build: Properties = {
    val properties = new Properties
    for (stream <- Option(getClass.getResourceAsStream("/metastore-shim.properties"))) {
      try properties.load(stream)
      finally stream.close()
    }
    properties
  }
}

/** `metastore_formats()`: one row for each table format whose jar the session has, for `metastore doctor`. */
object FormatsFunction extends TableFunction("formats") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    FormatReleases.all(session.sharedState.jarClassLoader).map { release =>
      val format = release.format
      ResultRow.row(
        format.title,
        release.version,
        format.oldest,
        format.newest,
        release.refusal.map(_.sentence))
    }
}

/**
 * `metastore_facts(table [, files] [, newest])`: the metadata of a table that ANALYZE needs and only the JVM
 * can read. Python reads it through SQL. The first row has `facts`, JSON; each other row is one data file.
 * With `newest => false` the answer may lack commits of other writers that the session does not know yet.
 */
object FactsFunction extends TableFunction("facts") {
  private val mapper = new ObjectMapper

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val name = call.text("table")
    val hasFiles = !call.optional("files").contains("false")
    val isNewest = !call.optional("newest").contains("false")
    val handle =
      if (hasFiles || isNewest) TableLookup.findNewest(session, name, refreshes = isNewest)
      else TableLookup.find(session, name)
    if (!hasFiles) Seq(factsRow(identity(handle)))
    else {
      requireSupported(session, name, handle.table)
      allFacts(session, handle)
    }
  }

  private def requireSupported(session: SparkSession, name: String, table: LakeTable): Unit =
    for (refusal <- table.refusal) {
      def owner = SqlName.everyPart(session.sessionState.sqlParser.parseMultipartIdentifier(name).init)
      val hint = if (refusal.isSelected) s" The table is $owner." else ""
      throw MetastoreException.unsupportedTable(name, refusal.reason, hint)
    }

  private def allFacts(session: SparkSession, handle: TableHandle): Seq[InternalRow] = {
    val table = handle.table
    val listing = table.facts
    val leaves = table.leaves(None)
    val partitioning = table.partitionColumns.flatMap(column => leaves.find(_.path == Seq(column)))
    val catalogProperties = handle.sessionTable.fold(Map.empty[String, String])(ownProperties(session, _))
    val properties = table.properties ++ catalogProperties
    val facts =
      identity(handle) ++ describe(session, table, leaves, listing) + ("properties" -> properties.asJava)
    factsRow(facts) +: listing.files.map(row(_, partitioning))
  }

  /**
   * Our properties of a table in the session's catalog: not every format stores TBLPROPERTIES in its
   * metadata.
   */
  private def ownProperties(session: SparkSession, table: TableIdentifier): Map[String, String] = {
    val catalog = session.sessionState.catalog
    val properties = Try(catalog.getTableMetadata(table).properties).getOrElse(Map.empty[String, String])
    properties.filter { case (name, _) => name.toLowerCase(Locale.ROOT).startsWith("metastore.") }
  }

  private def factsRow(facts: Map[String, Any]): InternalRow = {
    val emptyCells = Seq.fill(schema.length - 1)(None)
    ResultRow.row(mapper.writeValueAsString(facts.asJava) +: emptyCells: _*)
  }

  private def row(file: FileFacts, partitioning: Seq[Leaf]): InternalRow = {
    val live = file.live
    val constants = file.constants ++ FileConstants.fromTexts(partitioning, live.partition)
    ResultRow.row(
      None,
      live.path,
      if (file.location == live.path) None else Some(file.location),
      live.size,
      live.rows,
      live.deletedRows,
      file.deletes,
      ResultRow.texts(live.partition.toSeq),
      live.modified,
      file.format,
      file.isEncrypted,
      ResultRow.texts(constants.values.toSeq),
      ResultRow.list(constants.unknown),
      ResultRow.texts(file.names.toSeq),
      file.hasEqualityDeletes)
  }

  private def identity(handle: TableHandle): Map[String, Any] = Map(
    "format" -> handle.table.format,
    "name" -> handle.name.orNull,
    "uuid" -> handle.table.uuid,
    "location" -> handle.table.qualifiedLocation,
    "name_mapping" -> handle.table.nameMapping.orNull)

  private def describe(
      session: SparkSession,
      table: LakeTable,
      columns: Seq[Leaf],
      listing: SnapshotFacts): Map[String, Any] = {
    val leaves = columns.map { leaf =>
      Map[String, Any](
        "key" -> leaf.key,
        "path" -> leaf.path.asJava,
        "type" -> leaf.dataType.catalogString).asJava
    }
    val files = FileSystem.getDefaultUri(session.sessionState.newHadoopConf()).getScheme
    Map(
      "local" -> (files == "file"),
      "required" -> table.requiredColumns.toSeq.sorted.asJava,
      "snapshot" -> listing.snapshot.orNull,
      "unsettled" -> listing.recentFiles.asJava,
      "has_other_rows" -> listing.hasOtherRows,
      "leaves" -> leaves.asJava,
      "defaults" -> table.defaults.asJava,
      "has_current_schema" -> listing.hasCurrentSchema,
      "field_ids" -> table.fieldIds.asJava)
  }
}
