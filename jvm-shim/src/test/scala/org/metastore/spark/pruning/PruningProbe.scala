package org.metastore.spark.pruning

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Alias, And, Attribute, AttributeReference, Cast, Expression, Literal
}
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter, LeafNode, LocalRelation, LogicalPlan, OneRowRelation, Project, Statistics
}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.types.{
  BooleanType, DataType, MetadataBuilder, StringType, StructField, StructType
}

import org.metastore.spark.reason.PlanningTimeoutException
import org.metastore.spark.statistics.{InMemoryStatistics, StatisticsStore}
import org.metastore.spark.statistics.columns.{FileList, FileSetStatistics, FileSummary}
import org.metastore.spark.statistics.objects.{Manifest, Values}

/**
 * Asks the pruning rules without a query: which files would a filter read, and why? A diagnostic, meant for tests, for
 * `metastore.explain` and for the shell. The filter passes Spark's analyzer and optimizer first, as in a query.
 *
 * {{{
 * val probe = PruningProbe.open(spark, "a INT, s STRUCT<x: STRING>", "/warehouse/db/t/_metastore", uuid)
 * probe.kept("a > 5 AND s.x LIKE 'p%'")     // "0110": the second and the third file
 * }}}
 */
final class PruningProbe private (
    private[pruning] val filters: FilterReader,
    val statistics: FileSetStatistics,
    private[pruning] val resolver: ColumnResolver) {

  /** Paths of the files, in the order of all answers. */
  def paths: Array[String] = statistics.files.paths

  /** For each file `1` if the filter has to read it, `0` if no row can match. */
  def kept(filter: String): String = bits(verdictsOf(filter))

  private def bits(verdicts: Verdicts): String =
    (0 until verdicts.length).map(i => if (verdicts.isKept(i)) '1' else '0').mkString

  /** As `kept`, for many filters at once. */
  def keptByAll(filters: Array[String]): Array[String] = filters.map(kept)

  /** Filters to be asked about again and again. */
  def prepare(texts: Array[String]): PreparedFilters =
    new PreparedFilters(texts.map(filters.conjuncts(_)), this)

  /** The same as they are written, without Spark's optimizer. */
  def prepareAsWritten(texts: Array[String]): PreparedFilters =
    new PreparedFilters(texts.map(text => Seq(filters.analyzed(text).condition)), this)

  /** For each file `1` if it is proven that all its rows match. */
  def matchedFully(filter: String): String = {
    val proven = compiled(filter).allRowsMatch(statistics)
    paths.indices.map(i => if (proven.get(i)) '1' else '0').mkString
  }

  /** Why each file is kept or skipped, and which conjuncts could not be used and why: one JSON object. */
  def explain(filter: String): String = explain(compiled(filter))

  /** As `explain`, where planning has taken all of its time before. */
  def explainLate(filter: String): String = {
    val late = new EvaluationAllowance(
      Long.MaxValue,
      () => throw new PlanningTimeoutException(PruningProbe.LimitMillis))
    explain(FilterCompiler.compile(filters.conjuncts(filter), resolver, late))
  }

  /**
   * What is kept where planning is late once the clock was asked so often: the number of questions, an answer as of `kept`, and
   * why conjuncts could not be used.
   */
  def keptWithin(filter: String, questions: Int): String = {
    var asked = 0
    def ask(): Unit = {
      asked += 1
      if (asked > questions) throw new PlanningTimeoutException(PruningProbe.LimitMillis)
    }
    val rule = FilterCompiler.compile(
      filters.conjuncts(filter),
      resolver,
      new EvaluationAllowance(Long.MaxValue, () => ask()))
    val verdicts = rule.evaluate(statistics)
    s"$asked ${bits(verdicts)} ${verdicts.unusedConjuncts.values.map(_.code.name).mkString(",")}"
  }

  private[pruning] def explain(rule: PruningFilter): String = {
    val verdicts = rule.evaluate(statistics)
    val json = new ObjectMapper()
    val answer = json.createObjectNode()
    rule.conjuncts.foreach(conjunct =>
      answer.withArray[com.fasterxml.jackson.databind.node.ArrayNode]("conjuncts").add(conjunct.sql))
    val unused = answer.putObject("unused")
    verdicts.unusedConjuncts.toSeq.sortBy(_._1).foreach { case (i, reason) =>
      unused.put(i.toString, reason.toString)
    }
    val files = answer.putArray("files")
    (0 until verdicts.length).foreach { i =>
      val reason = verdicts.reason(i)
      files.addObject().put(
        "path",
        paths(i)).put("kept", verdicts.isKept(i)).put("conjunct", verdicts.skippedBy(i))
        .put("reason", reason.code.name).put("sentence", reason.sentence)
    }
    json.writeValueAsString(answer)
  }

  private def compiled(filter: String): PruningFilter =
    FilterCompiler.compile(filters.conjuncts(filter), resolver)

  private def verdictsOf(filter: String): Verdicts = compiled(filter).evaluate(statistics)
}

object PruningProbe {
  private val LimitMillis = 60000L
  private val Lo = "lo"
  private val Hi = "hi"
  private val Bounds = Seq(Lo, Hi)

  /**
   * Probes stored statistics; its files are all that the statistics know.
   *
   * @param ddl  the table's columns, as in CREATE TABLE
   * @param root folder of the statistics
   * @param uuid of the table
   */
  def open(spark: SparkSession, ddl: String, root: String, uuid: String): PruningProbe = {
    val store = StatisticsStore.open(root, spark.sessionState.newHadoopConf())
    val planning = store.planning(
      uuid,
      LimitMillis).fold(reason => throw new IllegalStateException(reason.toString), identity)
    val files = planning.manifest.blocks.flatMap(store.dataFiles(
      _)).groupBy(_.path).values.map(_.last).toSeq.sortBy(_.path)
    val list = FileList.fromKeys(files.map(_.key))
    val resolver =
      new ExpressionColumns(planning.manifest.expressions, spark.sessionState.conf, byPath(planning.manifest))
    new PruningProbe(new FilterReader(spark, schemaOf(ddl)), planning.forFiles(list, Nil), resolver)
  }

  /**
   * Probes statistics that are given: a JSON list of files, each with `rows` and `columns`; a column has `nulls`, `nans`,
   * `lo`, `hi` (SQL expressions), `lo_exact`, `hi_exact`, `values` (all of them but NULL and NaN), all optional, and `rows` where
   * they differ from the file's. Nothing is known of a column that no file has; a column that the table has not is an expression.
   */
  def ofZones(spark: SparkSession, ddl: String, zones: String): PruningProbe = {
    val schema = schemaOf(ddl)
    val filters = new FilterReader(spark, schema)
    val files = new ObjectMapper().readTree(zones)
    val list = (0 until files.size).map(files.get)
    val rows = list.map(file => optionalLong(file, "rows").getOrElse(-1L))
    val stored = leaves(schema, Nil).map { case (path, dataType) =>
      Known(path.mkString("."), key(path), dataType)
    }
    val resolver = byName(leaves(schema, Nil).map { case (path, _) => path -> key(path) }.toMap)
    val names = list.flatMap(_.path("columns").fieldNames.asScala).distinct.filterNot(name =>
      stored.exists(_.name == name))
    def keyOf(leaf: Expression): Option[String] = leaf match {
      case ColumnLookup.ColumnPath(root, path) => resolver.key(root, path)
      case _ => None
    }
    val keys = new ExpressionKeys(spark.sessionState.conf, keyOf)
    val computed = names.map { name =>
      val expression = filters.expression(name)
      Known(name, keys.toKey(expression).get, expression.dataType)
    }
    def inFiles(of: Known): Seq[Option[JsonNode]] =
      list.map(file => Option(file.path("columns").get(of.name)))
    val columns = stored ++ computed
    val bounds = constants(
      filters,
      for {
        of <- columns
        column <- inFiles(of).flatten
        text <-
          Bounds.flatMap(bound => Option(column.get(bound)).map(_.asText)) ++ values(column).toSeq.flatten
      } yield (text, of.dataType))
    def byColumn[T](tell: (
        JsonNode,
        Known,
        Option[Long]) => Option[T]): Map[(String, DataType), Seq[Option[T]]] = columns.map { of =>
      (of.key, of.dataType) -> inFiles(of).zip(list).map { case (column, file) =>
        column.flatMap(tell(_, of, optionalLong(file, "rows")))
      }
    }.filter(_._2.exists(_.isDefined)).toMap
    val summaries =
      byColumn((column, of, rows) => Some(zone(column, rows, text => bounds((text, of.dataType)))))
    val listed = byColumn((column, of, _) =>
      values(column).map(all => sorted(all.map(text => bounds((text, of.dataType))), of.dataType)))
    new PruningProbe(
      filters,
      new InMemoryStatistics(rows.toArray, summaries, listed),
      new ExpressionColumns(computed.map(of => of.key -> of.name).toMap, spark.sessionState.conf, resolver))
  }

  /** A column or an expression that files may know of. */
  private final case class Known(name: String, key: String, dataType: DataType)

  /** Columns of CHAR and VARCHAR are texts that remember it, as in the plan of a query. */
  private def schemaOf(ddl: String): StructType =
    CharVarcharUtils.replaceCharVarcharWithStringInSchema(StructType.fromDDL(ddl))

  private def values(column: JsonNode): Option[Seq[String]] =
    Option(column.get("values")).map(list => (0 until list.size).map(list.get(_).asText))

  private def sorted(values: Seq[Any], dataType: DataType): Values =
    LiteralValues.points(values.map(LiteralValues.key(_, dataType).get)).fold(Values.none)(_.points.get)

  private def key(path: Seq[String]): String = path.mkString("\u0000")

  private def leaves(schema: StructType, above: Seq[String]): Seq[(Seq[String], DataType)] =
    schema.fields.toSeq.flatMap { field =>
      field.dataType match {
        case inner: StructType => leaves(inner, above :+ field.name)
        case dataType => Seq((above :+ field.name, dataType))
      }
    }

  private def constants(filters: FilterReader, all: Seq[(String, DataType)]): Map[(String, DataType), Any] = {
    val distinct = all.distinct
    distinct.zip(filters.values(distinct)).toMap
  }

  private def zone(column: JsonNode, rows: Option[Long], value: String => Any): FileSummary = FileSummary(
    optionalLong(column, "rows").orElse(rows).getOrElse(-1),
    optionalLong(column, "nulls"),
    optionalLong(column, "nans"),
    Option(column.get(Lo)).map(text => value(text.asText)),
    Option(column.get(Hi)).map(text => value(text.asText)),
    column.path("lo_exact").asBoolean(true),
    column.path("hi_exact").asBoolean(true),
    None,
    None,
    None)

  private def optionalLong(node: JsonNode, field: String): Option[Long] =
    Option(node.get(field)).filterNot(_.isNull).map(_.asLong)

  /** Columns by the paths that the statistics know them by, the newest block first. */
  private def byPath(manifest: Manifest): ColumnResolver =
    byName(manifest.blocks.flatMap(_.columns).map(entry => entry.path -> entry.key).toMap)

  /** Names are those of the schema, or differ from one of them by case alone, as queries may write them; `failing` fails. */
  private def byName(keys: Map[Seq[String], String]): ColumnResolver =
    (root: Attribute, path: Seq[String]) => {
      val name = root.name +: path
      if (root.name == "failing") throw new IllegalStateException(root.name)
      keys.get(name).orElse(keys.keys.filter(sameIgnoringCase(_, name)).toSeq match {
        case Seq(only) => keys.get(only)
        case _ => None
      })
    }

  private def sameIgnoringCase(a: Seq[String], b: Seq[String]): Boolean =
    a.length == b.length && a.zip(b).forall { case (one, other) => one.equalsIgnoreCase(other) }
}

/** A table that has columns and nothing else. */
private final case class ProbeTable(override val output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/** Reads filters as a query over a table with these columns would: parsed, analyzed, optimized, split into conjuncts. */
private[spark] final class FilterReader(spark: SparkSession, schema: StructType) {

  /** @throws org.apache.spark.sql.AnalysisException if it is no filter over these columns */
  def conjuncts(filter: String): Seq[Expression] = {
    val optimized = spark.sessionState.executePlan(analyzed(filter)).optimizedPlan
    if (isEmpty(optimized)) Seq(Literal(false, BooleanType))
    else optimized.collect { case Filter(condition, _) => split(condition) }.flatten
  }

  /** @throws org.apache.spark.sql.AnalysisException if it is no filter over these columns */
  def analyzed(filter: String): Filter = {
    val parsed = spark.sessionState.sqlParser.parseExpression(filter)
    spark.sessionState.executePlan(Filter(parsed, table)).analyzed.collectFirst { case found: Filter =>
      found
    }.get
  }

  /** An expression over the columns, or an aggregate function of them. */
  def expression(text: String): Expression = {
    val named = Project(Seq(Alias(spark.sessionState.sqlParser.parseExpression(text), "value")()), table)
    spark.sessionState.executePlan(named).analyzed.expressions.head.asInstanceOf[Alias].child
  }

  /** The columns, and one that is not stored with the rows: `hidden`. */
  private def table: LogicalPlan = ProbeTable(
    (schema :+ FilterReader.hidden).map(f =>
      AttributeReference(f.name, f.dataType, f.nullable, f.metadata)()))

  /** The values of constant expressions, each cast to its type, as Catalyst holds them. */
  def values(constants: Seq[(String, DataType)]): Seq[Any] =
    constants.grouped(FilterReader.ConstantsAPlan).flatMap(inOnePlan).toSeq

  private def inOnePlan(constants: Seq[(String, DataType)]): Seq[Any] = {
    val timeZone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    val columns = constants.map { case (text, dataType) =>
      Alias(Cast(spark.sessionState.sqlParser.parseExpression(text), dataType, timeZone), "value")()
    }
    val plan = Project(columns, OneRowRelation())
    val row: InternalRow = spark.sessionState.executePlan(plan).executedPlan.executeCollect()(0).copy()
    constants.zipWithIndex.map { case ((_, dataType), i) => row.get(i, dataType) }
  }

  private def isEmpty(plan: LogicalPlan): Boolean = plan.collectFirst { case local: LocalRelation =>
    local.data.isEmpty
  }.contains(true)

  private def split(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => split(left) ++ split(right)
    case other => Seq(other)
  }
}

private object FilterReader {
  private val ConstantsAPlan = 500
  private val hidden =
    StructField(
      "hidden",
      StringType,
      nullable = true,
      new MetadataBuilder().putBoolean("__metadata_col", value = true).build())
}
