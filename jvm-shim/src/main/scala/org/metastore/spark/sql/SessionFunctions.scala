package org.metastore.spark.sql

import java.util.{Locale, Properties}

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.contract.Contract
import org.metastore.spark.explain.{ExplainQuery, OperatorEstimate, PruningHistory}
import org.metastore.spark.reason.{MetastoreException, NearNames, SqlName}
import org.metastore.spark.tables.{
  FileConstants, FileFacts, FormatReleases, LakeTable, Leaf, SnapshotFacts, TableHandle, TableLookup
}

/** `metastore.explain(query)`: one row a scan and data file. */
object ExplainFunction extends TableFunction("explain") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    ExplainQuery.decisions(session, call.text("query")).map { file =>
      ResultRow.row(
        file.scan,
        Some(file.table).filter(_.nonEmpty),
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

/** `metastore.estimates(query)`: one row an operator of the optimized plan. */
object EstimatesFunction extends TableFunction("estimates") {
  private val Run = "analyze"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = answer(session, call)()

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] =
    if (call.flag(Run)) Some(answer(session, call)) else None

  private def answer(session: SparkSession, call: Arguments): () => Seq[InternalRow] = {
    val estimates = OperatorEstimate.fromQuery(session, call.text("query"), call.flag(Run))
    () =>
      estimates().map { one =>
        ResultRow.row(
          one.operator,
          one.parent,
          one.name,
          one.detail,
          one.rows.map(ResultRow.decimalOf),
          ResultRow.decimalOf(one.bytes),
          one.scan.map(_.rows),
          one.scan.map(_.source),
          one.scan.map(_.isExact),
          one.countedRows,
          one.qError)
      }
  }
}

/** `metastore.history([table])`: one row a scan of a query that ran. */
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

/** `metastore.settings()`: one row a setting. */
object SettingsFunction extends TableFunction("settings") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val conf = MetastoreConf.fromSession(session)
    val known = MetastoreConf.all.map { setting =>
      conf.findInvalid(setting) match {
        case Some(wrong) =>
          val problem =
            s"'${wrong.text}' (${wrong.source}) is no value of this setting: the default is in force"
          ResultRow.row(setting.key, setting.default, "default", setting.default, setting.meaning, problem)
        case None =>
          val found = conf.resolve(setting)
          ResultRow.row(setting.key, found.text, found.source, setting.default, setting.meaning, None)
      }
    }
    val unknown =
      for ((key, text) <- conf.unknownKeys.toSeq.sorted)
        yield (
          key,
          text,
          "spark",
          NearNames.phraseSuggestion(key, MetastoreConf.all.map(_.key), "spark.metastore."))
    val others =
      for ((name, text, source, hint) <- unknown ++ MetastoreConf.findMisspelt(sys.env))
        yield ResultRow.row(name, text, source, None, None, s"there is no such setting.$hint")
    known ++ others
  }
}

/** `metastore.help()`: one row a table function. */
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

/** `metastore.version()`: one row. */
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

/** `metastore_formats()`: one row a table format whose jar the session has. `metastore doctor` asks it. */
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
 * `metastore_facts(table [, files])`: what ANALYZE has to know of a table as its name stands for it, where only the JVM reads
 * that from its metadata. Python asks it through SQL. The first row has `facts`, JSON; each other row is one data file.
 */
object FactsFunction extends TableFunction("facts") {
  private val mapper = new ObjectMapper

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val name = call.text("table")
    val isListed = !call.optional("files").contains("false")
    val found = if (isListed) TableLookup.findAnew(session, name) else TableLookup.find(session, name)
    found.table match {
      case _ if !isListed => Seq(facts(identity(found)))
      case table =>
        table.refusal.foreach { why =>
          def owner = SqlName.everyPart(session.sessionState.sqlParser.parseMultipartIdentifier(name).init)
          throw MetastoreException.unsupportedTable(
            name,
            why.reason,
            if (why.isSelected) s" The table is $owner." else "")
        }
        val (listing, leaves) = (table.facts, table.leaves(None))
        val partitioning = table.partitionColumns.flatMap(column => leaves.find(_.path == Seq(column)))
        val properties =
          table.properties ++ found.sessionTable.fold(Map.empty[String, String])(ownProperties(session, _))
        facts(identity(found) ++ described(
          session,
          table,
          leaves,
          listing) + ("properties" -> properties.asJava)) +: listing.files.map(
          row(_, partitioning))
    }
  }

  /** Properties of ours that the session's catalog has of a table: not every format keeps what TBLPROPERTIES says. */
  private def ownProperties(session: SparkSession, table: TableIdentifier): Map[String, String] =
    Try(session.sessionState.catalog.getTableMetadata(table).properties).getOrElse(Map.empty[String, String])
      .filter { case (name, _) => name.toLowerCase(Locale.ROOT).startsWith("metastore.") }

  private def facts(found: Map[String, Any]): InternalRow =
    ResultRow.row(mapper.writeValueAsString(found.asJava) +: schema.fields.toSeq.tail.map(_ => None): _*)

  private def row(file: FileFacts, partitioning: Seq[Leaf]): InternalRow = {
    val live = file.live
    val constants = file.constants ++ FileConstants.ofTexts(partitioning, live.partition)
    ResultRow.row(
      None,
      live.path,
      file.location,
      live.size,
      live.rows,
      live.deletedRows,
      file.deletes,
      ResultRow.texts(live.partition.toSeq),
      live.modified,
      file.format,
      file.isEncrypted,
      ResultRow.texts(constants.known.toSeq),
      ResultRow.list(constants.unknown),
      ResultRow.texts(file.names.toSeq),
      file.hasEqualityDeletes)
  }

  private def identity(found: TableHandle): Map[String, Any] = Map(
    "format" -> found.table.format,
    "name" -> found.name.orNull,
    "uuid" -> found.table.uuid,
    "location" -> found.table.qualifiedLocation,
    "name_mapping" -> found.table.nameMapping.orNull)

  private def described(
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
