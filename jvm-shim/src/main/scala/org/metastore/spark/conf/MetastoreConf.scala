package org.metastore.spark.conf

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.reason.{MetastoreException, NearNames, VisibleText}

/** The settings of one session, each read at the moment it is asked for: Spark conf, then environment, then default. */
final class MetastoreConf(conf: SQLConf) {
  import MetastoreConf._

  def enabled: Boolean = get(Enabled)
  def pruningEnabled: Boolean = enabled && get(PruningEnabled)
  def cboEnabled: Boolean = enabled && get(CboEnabled)
  def pruneInsideWrites: Boolean = get(PruneInsideWrites)
  def hudiBypassSkipping: Boolean = get(HudiBypassSkipping)
  def store: Option[String] = Some(get(Store)).filter(_.nonEmpty)
  def analyzeFormats: Set[String] = get(AnalyzeFormats).toSet
  def cacheBytes: Long = get(CacheSize)
  def planningTimeoutMillis: Long = get(PlanningTimeout)
  def readTimeoutMillis: Long = get(ReadTimeout)

  /** The text of a setting and its source. */
  def resolve(setting: Setting[_]): SettingValue =
    Option(conf.getConfString(setting.key, null)).map(SettingValue(_, "spark"))
      .orElse(Option(System.getenv(setting.environment)).map(SettingValue(_, "environment")))
      .getOrElse(SettingValue(setting.default, "default"))

  /** What stands somewhere for a setting and is no value of it. */
  def findInvalid(setting: Setting[_]): Option[SettingValue] = Some(resolve(setting)).filter(found => setting.parse(found.text.trim).isEmpty)

  /** Settings of this session that there are not, by their keys. */
  def unknownKeys: Map[String, String] =
    conf.getAllConfs.filter { case (key, _) => key.startsWith(Prefix) && !all.exists(_.key == key) }

  /** The value of a setting. A text that is no value counts as the default, with one log line: planning never fails. */
  def get[T](setting: Setting[T]): T = {
    val found = resolve(setting)
    setting.parse(found.text.trim).getOrElse {
      warnOnce(setting, found)
      setting.parse(setting.default).get
    }
  }
}

/** The registry of settings. */
object MetastoreConf extends Logging {
  private val Prefix = "spark.metastore."
  private val truths =
    (Seq("true", "t", "yes", "y", "on", "1").map(_ -> true) ++ Seq("false", "f", "no", "n", "off", "0").map(_ -> false)).toMap
  private val Whole = java.util.regex.Pattern.compile("[+-]?[0-9]+") // Java would take the digits of all scripts
  private val formats = Set("iceberg", "delta", "hudi", "parquet")

  private def boolean(key: String, default: Boolean, meaning: String) =
    Setting(key, default.toString, meaning, text => truths.get(text.toLowerCase(Locale.ROOT)))

  private def text(key: String, meaning: String) = Setting(key, "", meaning, Some(_))

  private def names(key: String, default: String, meaning: String) = Setting(key, default, meaning, text => Some(namesIn(text)))

  private def namesIn(text: String): Seq[String] = text.split(",").map(_.trim).filter(_.nonEmpty).toSeq

  private def duration(key: String, default: String, meaning: String) =
    Setting(key, default, meaning, text => Try(JavaUtils.timeStringAsMs(text).longValue).toOption.filter(_ >= 0))

  private def whole(key: String, default: Int, range: Range.Inclusive, meaning: String) =
    Setting(
      key, default.toString, meaning,
      text => Some(text).filter(Whole.matcher(_).matches).flatMap(digits => Try(digits.toInt).toOption).filter(range.contains(_)))

  val Enabled: Setting[Boolean] = boolean("spark.metastore.enabled", default = true,
    "false: as if not installed (no pruning, no statistics to the optimizer); table functions still read")
  val PruningEnabled: Setting[Boolean] = boolean("spark.metastore.pruning.enabled", default = true, "file pruning alone")
  val CboEnabled: Setting[Boolean] = boolean("spark.metastore.cbo.enabled", default = true,
    "statistics to the optimizer alone; also switches on spark.sql.cbo.enabled and spark.sql.cbo.joinReorder.enabled " +
      "for the SparkContext where the user has set neither")
  val PruneInsideWrites: Setting[Boolean] = boolean("spark.metastore.pruneInsideWrites", default = false,
    "prune the reads of INSERT .. SELECT, MERGE sources, CTAS")
  val HudiBypassSkipping: Setting[Boolean] = boolean("spark.metastore.hudi.bypassSkipping", default = true,
    "Hudi's own skipping is not asked where our statistics cover the table")
  val Store: Setting[String] = text("spark.metastore.store", "root URI for all statistics; not set: beside each table")
  val AnalyzeFormats: Setting[Seq[String]] = Setting("spark.metastore.analyze.formats", "iceberg,delta,hudi",
    "formats whose ANALYZE TABLE is ours; add parquet to take over session-catalog Parquet tables too",
    text => Some(namesIn(text).map(_.toLowerCase(Locale.ROOT))).filter(_.forall(formats)))
  val HistogramBins: Setting[Int] = whole("spark.metastore.histogram.bins", 1000, 2 to 10000, "bins of a histogram, 2..10000")
  val HistogramKind: Setting[String] = Setting("spark.metastore.histogram.kind", "equi_height",
    "bins that hold equally many values, or equi_width: bins equally wide",
    text => Some(text).filter(Set("equi_height", "equi_width")))
  val FrequenciesTop: Setting[Int] = whole("spark.metastore.frequencies.top", 1000, 1 to Int.MaxValue,
    "most frequent values kept per column and file when not complete")
  val FrequenciesAlgorithm: Setting[String] = Setting("spark.metastore.frequencies.algorithm", "auto",
    "how a table's frequencies are made of those of its files: auto and exact take reduce, duplicates or scatter by the " +
      "number of values; exact, and duplicates or scatter where asked for, read those columns again of which some file " +
      "does not keep all values", text => Some(text).filter(Set("auto", "exact", "reduce", "duplicates", "scatter")))
  val FrequenciesThreshold: Setting[Int] = whole("spark.metastore.frequencies.threshold", 1000000, 0 to Int.MaxValue - 1,
    "number of distinct (or repeated) values from which they are many")
  val RanksColumns: Setting[Seq[String]] = names("spark.metastore.ranks.columns", "", "columns that also get exact ranks")
  val DistributionColumns: Setting[Seq[String]] = names("spark.metastore.distribution.columns", "",
    "columns that also get the distribution of values over files")
  val Python: Setting[String] = text("spark.metastore.python",
    "interpreter that runs ANALYZE on the driver host; not set: found; a session cannot change it")
  val SnapshotsKeep: Setting[Int] = whole("spark.metastore.snapshots.keep", 10, 1 to Int.MaxValue,
    "analyzed snapshots kept in the manifest")
  val CacheSize: Setting[Long] = Setting("spark.metastore.cache.size", "256m",
    "decoded statistics and lists of data files kept in the driver",
    text => Try(JavaUtils.byteStringAsBytes(text)).toOption.filter(_ >= 0))
  val PlanningTimeout: Setting[Long] = duration("spark.metastore.planning.timeout", "2s", "past it a scan is planned without us")
  val ReadTimeout: Setting[Long] = duration("spark.metastore.read.timeout", "30s",
    "past it a table function, or the data source asked for a table's name, ends with an error")

  /** All settings, in the order in which they are shown. */
  val all: Seq[Setting[_]] = Seq(Enabled, PruningEnabled, CboEnabled, PruneInsideWrites, HudiBypassSkipping, Store,
    AnalyzeFormats, HistogramBins, HistogramKind, FrequenciesTop, FrequenciesAlgorithm, FrequenciesThreshold, RanksColumns, DistributionColumns, Python, SnapshotsKeep, CacheSize,
    PlanningTimeout, ReadTimeout)

  /**
   * The variables of an environment that look like settings and are none: name, value, "environment", and the hint that names
   * what is near. Other software has variables that begin as ours do.
   */
  def findMisspelt(environment: Map[String, String]): Seq[(String, String, String, String)] = {
    val (begin, known) = ("METASTORE_", all.map(_.environment))
    environment.toSeq.sorted.collect { case (name, text) if name.startsWith(begin) && !known.contains(name) =>
      (name, text, "environment", NearNames.phraseSuggestion(name, known, begin))
    }.filter(_._4.nonEmpty)
  }

  /** One log line for each variable of this process that is near to a setting. */
  def warnOfMisspeltVariables(): Unit = findMisspelt(sys.env).foreach { case (name, _, _, hint) =>
    if (warned.add(name)) logWarning(s"[METASTORE_INVALID_SETTING] the environment variable $name is no setting.$hint")
  }

  /** The settings of the session that runs the current thread's query. */
  def apply(): MetastoreConf = new MetastoreConf(SQLConf.get)

  /** The settings of one session. */
  def of(session: SparkSession): MetastoreConf = new MetastoreConf(session.sessionState.conf)

  /**
   * Passes where every setting of the session has a value that it can have. Queries go on with defaults; who asks about
   * statistics is told.
   *
   * @throws MetastoreException METASTORE_INVALID_SETTING
   */
  def requireValid(session: SparkSession): Unit = {
    val conf = of(session)
    all.foreach { setting =>
      conf.findInvalid(setting).foreach(wrong => throw MetastoreException.invalidSetting(setting.key, wrong.text, wrong.source))
    }
  }

  private val warned = ConcurrentHashMap.newKeySet[String]()

  private def warnOnce(setting: Setting[_], found: SettingValue): Unit =
    if (warned.add(s"${setting.key}=${found.text}")) {
      logWarning(VisibleText(s"[METASTORE_INVALID_SETTING] '${found.text}' is no value for ${setting.key} (from ${found.source}): " +
        s"'${setting.default}' is used."))
    }
}

/** One setting of the Metastore: how it is called, what it means, how its text is read.
  *
  * @param key     name as a Spark conf
  * @param default text of the default; empty: nothing is set
  * @param meaning one sentence for people
  * @param parse   the value of a text, or None where the text is not a value
  */
final case class Setting[T](key: String, default: String, meaning: String, parse: String => Option[T]) {

  /** The same setting as an environment variable: `spark.metastore.cbo.enabled` is `METASTORE_CBO_ENABLED`. */
  val environment: String =
    key.stripPrefix("spark.").replaceAll("([a-z])([A-Z])", "$1_$2").replace('.', '_').toUpperCase(Locale.ROOT)
}

/** A setting's text and where it was found: `spark`, `environment` or `default`. */
final case class SettingValue(text: String, source: String)
