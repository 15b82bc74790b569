package org.metastore.spark.conf

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{Indexed, MetastoreException, NearNames, Optional, VisibleText}

/** The settings of one session: Spark conf, then environment, then default. Each call reads them anew. */
final class MetastoreConf(conf: SQLConf) {
  import MetastoreConf._

  def enabled: Boolean = get(Enabled)
  def pruningEnabled: Boolean = enabled && get(PruningEnabled)
  def pruningLimitEnabled: Boolean = pruningEnabled && get(PruningLimitEnabled)
  def pruningTopKEnabled: Boolean = pruningEnabled && get(PruningTopKEnabled)
  def pruningJoinEnabled: Boolean = pruningEnabled && get(PruningJoinEnabled)
  def pruningRowLevel: String = if (pruningEnabled) get(PruningRowLevel) else "off"
  def aggregatesEnabled: Boolean = pruningEnabled && get(AggregatesEnabled)
  def cboEnabled: Boolean = enabled && get(CboEnabled)
  def pruneInsideWrites: Boolean = get(PruneInsideWrites)
  def icebergBypassSkipping: Boolean = get(IcebergBypassSkipping)
  def hudiBypassSkipping: Boolean = get(HudiBypassSkipping)
  def historyEnabled: Boolean = enabled && get(HistoryEnabled)
  def store: Option[String] = valid(get(Store))(_.nonEmpty)
  def analyzeFormats: Set[String] = get(AnalyzeFormats).toSet
  def functions: Seq[String] = get(Functions)
  def analyzeAuto: String = get(AnalyzeAuto)
  def analyzeAutoTimeoutMillis: Long = get(AnalyzeAutoTimeout)
  def analyzeTimeoutMillis: Long = get(AnalyzeTimeout)
  def maxEvaluations: Long = get(MaxEvaluations).toLong
  def cacheBytes: Long = get(CacheSize)
  def planningTimeoutMillis: Long = get(PlanningTimeout)
  def readTimeoutMillis: Long = get(ReadTimeout)
  def refreshMillis: Long = get(Refresh)

  /** The text of a setting and its source. */
  def resolve(setting: Setting[_]): SettingValue = {
    val sessionText = conf.getConfString(setting.key, null)
    val environmentText = System.getenv(setting.environment)
    if (sessionText != null) SettingValue(sessionText, "spark")
    else if (environmentText != null) SettingValue(environmentText, "environment")
    else SettingValue(setting.default, "default")
  }

  /** The text of a setting and its source, if it is no value of the setting. */
  def findInvalid(setting: Setting[_]): Option[SettingValue] = {
    val value = resolve(setting)
    Optional.when(setting.parse(value.text.trim).isEmpty)(value)
  }

  /** Texts of this session under keys that begin as ours do and are no setting, by the keys. */
  def unknownKeys: Map[String, String] =
    conf.getAllConfs.filter { case (key, _) => key.startsWith(Prefix) && !keys(key) }

  /**
   * The value of a setting. An invalid text counts as the default, with one log line: planning never fails.
   */
  def get[T](setting: Setting[T]): T = {
    val value = resolve(setting)
    setting.parse(value.text.trim).getOrElse {
      warnOnce(setting, value)
      setting.parse(setting.default).get
    }
  }
}

/** The registry of settings: what `contract/settings.json` declares. */
object MetastoreConf extends Logging {
  private val Prefix = "spark.metastore."
  private val PropertyPrefix = "metastore."
  private val Truths = Set("true", "t", "yes", "y", "on", "1")
  private val Falsehoods = Set("false", "f", "no", "n", "off", "0")
  // Java would take the digits of all scripts
  private val Whole = java.util.regex.Pattern.compile("[+-]?[0-9]+")

  /** The parsers of settings' texts, by the setting's type. */
  private val Parsers: Map[String, JsonNode => String => Option[Any]] = Map(
    "flag" -> (_ => text => parseFlag(text.toLowerCase(Locale.ROOT))),
    "text" -> (_ => Some(_)),
    "expressions" -> (_ => Some(_)),
    "names" -> (_ => text => Some(namesIn(text))),
    "formats" -> (_ => text => valid(namesIn(text.toLowerCase(Locale.ROOT)))(_.forall(formats))),
    "choice" -> (declared => valid(_)(Contract.texts(declared, "choices").contains)),
    "whole" -> (declared => parseWhole(_, declared.get("min").intValue, declared.get("max").intValue)),
    "size" -> (_ => text => parseNumber(JavaUtils.byteStringAsBytes(text))(_ >= 0)),
    "duration" -> (_ => text => parseNumber(JavaUtils.timeStringAsMs(text).longValue)(_ >= 0)))

  /** All settings, in the order in which they are shown. */
  val all: Seq[Setting[_]] = Contract.read("settings").asScala.map { entry =>
    Setting[Any](
      key = entry.get("key").asText,
      default = entry.get("default").asText,
      meaning = entry.get("meaning").asText.replace("`", ""),
      parse = Parsers(entry.get("type").asText)(entry),
      users = Contract.texts(entry, "used_by").toSet,
      isTableProperty = entry.path("table_property").asBoolean)
  }.toSeq

  private lazy val keys: Set[String] = Indexed.set(all)(_.key)

  /** Names of the table properties that ANALYZE and writes look at. */
  lazy val tableProperties: Seq[String] = all.filter(_.isTableProperty).map(_.key.stripPrefix("spark."))

  val Enabled: Setting[Boolean] = find("enabled")
  val PruningEnabled: Setting[Boolean] = find("pruning.enabled")
  val PruningLimitEnabled: Setting[Boolean] = find("pruning.limit.enabled")
  val PruningTopKEnabled: Setting[Boolean] = find("pruning.topK.enabled")
  val PruningJoinEnabled: Setting[Boolean] = find("pruning.join.enabled")
  val PruningRowLevel: Setting[String] = find("pruning.rowLevel")
  val AggregatesEnabled: Setting[Boolean] = find("aggregates.enabled")
  val CboEnabled: Setting[Boolean] = find("cbo.enabled")
  val MaxEvaluations: Setting[Int] = find("pruning.values.maxEvaluations")
  val PruneInsideWrites: Setting[Boolean] = find("pruneInsideWrites")
  val IcebergBypassSkipping: Setting[Boolean] = find("iceberg.bypassSkipping")
  val HudiBypassSkipping: Setting[Boolean] = find("hudi.bypassSkipping")
  val HistoryEnabled: Setting[Boolean] = find("history.enabled")
  val Store: Setting[String] = find("store")
  val AnalyzeFormats: Setting[Seq[String]] = find("analyze.formats")
  val Functions: Setting[Seq[String]] = find("functions")
  val AnalyzeAuto: Setting[String] = find("analyze.auto")
  val AnalyzeAutoTimeout: Setting[Long] = find("analyze.auto.timeout")
  val AnalyzeTimeout: Setting[Long] = find("analyze.timeout")
  val Python: Setting[String] = find("python")
  val CacheSize: Setting[Long] = find("cache.size")
  val PlanningTimeout: Setting[Long] = find("planning.timeout")
  val ReadTimeout: Setting[Long] = find("read.timeout")
  val Refresh: Setting[Long] = find("refresh")

  private def find[T](name: String): Setting[T] =
    all.find(_.key == Prefix + name).get.asInstanceOf[Setting[T]]

  private def parseFlag(text: String): Option[Boolean] = valid(Truths(text))(_ || Falsehoods(text))

  private def parseWhole(text: String, least: Int, most: Int): Option[Int] =
    if (Whole.matcher(text).matches) parseNumber(text.toInt)(number => least <= number && number <= most)
    else None

  private def parseNumber[N](number: => N)(isValid: N => Boolean): Option[N] =
    Try(number).toOption.filter(isValid)

  private def valid[V](value: V)(isValid: V => Boolean): Option[V] =
    Optional.when(isValid(value))(value)

  private lazy val formats = Indexed.set(Contract.named(Contract.read("formats")))(_._1)

  private def namesIn(text: String): Seq[String] = text.split(",").map(_.trim).filter(_.nonEmpty).toSeq

  /**
   * The variables of an environment that are misspelt settings: name, value, "environment", and a hint with
   * the nearest settings. A variable without a near setting belongs to other software.
   */
  def findMisspelt(environment: Map[String, String]): Seq[(String, String, String, String)] = {
    val (prefix, variables) = ("METASTORE_", all.map(_.environment))
    for {
      (name, text) <- environment.toSeq.sorted
      if name.startsWith(prefix) && !variables.contains(name)
      hint = NearNames.phraseSuggestion(name, variables, prefix)
      if hint.nonEmpty
    } yield (name, text, "environment", hint)
  }

  /** Logs each variable of this process that is a misspelt setting. */
  def warnOfMisspeltVariables(): Unit =
    for ((name, _, _, hint) <- findMisspelt(sys.env) if warned.add(name))
      logWarning(s"[METASTORE_INVALID_SETTING] the environment variable $name is no setting.$hint")

  /** The settings of the session that runs the current thread's query. */
  def apply(): MetastoreConf = new MetastoreConf(SQLConf.get)

  /** The settings of one session. */
  def fromSession(session: SparkSession): MetastoreConf = new MetastoreConf(session.sessionState.conf)

  /**
   * Checks the values of the settings that some parts use (`analyze`, `read`, `plan`).
   * Queries go on with defaults; statements about statistics raise an error.
   *
   * @throws MetastoreException METASTORE_INVALID_SETTING
   */
  def requireValid(session: SparkSession, users: Set[String]): Unit = {
    val conf = fromSession(session)
    for {
      setting <- all
      if setting.users.exists(users)
      value <- conf.findInvalid(setting)
    } throw MetastoreException.invalidSetting(setting.key, value.text, value.source)
  }

  /**
   * Checks that a statement may set a key to a text: that the key is not misspelt, and the text a valid
   * value.
   *
   * @throws MetastoreException METASTORE_INVALID_SETTING
   */
  def requireSettable(key: String, text: String): Unit = {
    val setting = all.find(_.key == key)
    val isWrong = setting.exists(_.parse(text.trim).isEmpty)
    if (isWrong) throw MetastoreException.invalidSetting(key, text, "SET")
    lazy val hint = NearNames.phraseSuggestion(key, all.map(_.key), Prefix)
    val isMisspelt = setting.isEmpty && key.startsWith(Prefix) && hint.nonEmpty
    if (isMisspelt) throw MetastoreException.noSuchSetting(key, text, hint)
  }

  /** Logs each property of a table that is a misspelt property of ours. */
  def warnOfMisspeltProperties(table: String, properties: Map[String, String]): Unit = {
    val unknown = properties.keys.toSeq.sorted.diff(tableProperties)
    for (name <- unknown if name.toLowerCase(Locale.ROOT).startsWith(PropertyPrefix)) {
      val hint = NearNames.hint(name, tableProperties, PropertyPrefix)
      val line = s"[METASTORE_INVALID_SETTING] $name of $table: there is no such table property.$hint"
      if (warned.add(line)) logWarning(VisibleText(line))
    }
  }

  private val warned = ConcurrentHashMap.newKeySet[String]()

  private def warnOnce(setting: Setting[_], value: SettingValue): Unit =
    if (warned.add(s"${setting.key}=${value.text}")) {
      logWarning(VisibleText(
        s"[METASTORE_INVALID_SETTING] '${value.text}' is no value for ${setting.key} (from ${value.source}): " +
          s"'${setting.default}' is used."))
    }
}

/** One setting of the Metastore.
  *
  * @param key     name as a Spark conf
  * @param default text of the default; empty: nothing is set
  * @param meaning one sentence for people
  * @param parse   the value of a text, or None where the text is not a value
  * @param users   the parts that use it, as `contract/settings.json` names them
  * @param isTableProperty whether a table may have it, too, without `spark.` before it
  */
final case class Setting[T](
    key: String,
    default: String,
    meaning: String,
    parse: String => Option[T],
    users: Set[String],
    isTableProperty: Boolean) {

  /** The setting's environment variable: `METASTORE_CBO_ENABLED` for `spark.metastore.cbo.enabled`. */
  val environment: String =
    key.stripPrefix("spark.").replaceAll("([a-z])([A-Z])", "$1_$2").replace('.', '_').toUpperCase(Locale.ROOT)
}

/** A setting's text and its source: `spark`, `environment` or `default`. */
final case class SettingValue(text: String, source: String)
