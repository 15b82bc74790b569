package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8
import java.time.zone.ZoneRulesProvider
import java.util.{IdentityHashMap, Locale}

import org.apache.commons.codec.binary.Hex
import org.apache.commons.codec.digest.DigestUtils

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ArrayType, DataType, Decimal, MapType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.columns.TypePromotion
import org.metastore.spark.statistics.objects.ColumnEntry

/**
 * The keys of expressions over columns in the statistics: expressions with equal keys have equal values in every row. A key covers
 * all that the values depend on beside the columns: time zone, ANSI mode, versions of Spark and Java, and the version that the
 * session's settings give a user's function. An expression for which this is not certain has no key.
 *
 * @param conf      the settings of the session that evaluates the expression
 * @param columnKey the key of a column or a field of structs
 */
private[spark] final class ExpressionKeys(conf: SQLConf, columnKey: Expression => Option[String]) {
  import ExpressionKeys._

  private val digests = new IdentityHashMap[Expression, Option[String]]

  /** What the values of all expressions depend on in this session. */
  private lazy val session: String = {
    val settings =
      for ((key, value) <- conf.getAllConfs.toSeq.sorted if isMeaningful(key)) yield Seq(key, value)
    val surroundings = Seq(
      SPARK_VERSION,
      System.getProperty("java.specification.version"),
      conf.ansiEnabled.toString,
      conf.caseSensitiveAnalysis.toString)
    hash(surroundings ++ settings.flatten)
  }

  private lazy val versions: Map[String, String] = {
    val functions = new MetastoreConf(conf).functions.map(_.toLowerCase(Locale.ROOT).split(":", 2))
    val named = for (Array(name, version) <- functions) yield name.trim -> version.trim
    named.filter(_._2.nonEmpty).toMap
  }

  /** The version that the user gives a function; None where its code may become another one under the same name. */
  def versionOf(function: UserDefinedExpression): Option[String] = function match {
    case call: Expression if call.deterministic =>
      versions.get(function.name.toLowerCase(Locale.ROOT))
    case _ => None
  }

  /** The key of an optimized expression. */
  def toKey(expression: Expression): Option[String] =
    digest(expression).map(tree => ColumnEntry.ExpressionPrefix + hash(Seq(session, tree)))

  private def digest(expression: Expression): Option[String] =
    digests.computeIfAbsent(expression, compute(_))

  private def compute(expression: Expression): Option[String] = expression match {
    case column @ ColumnLookup.ColumnPath(root, _) =>
      if (isAsStored(column, root)) digestColumn(column) else None
    case Literal(value, dataType) if isPlain(dataType) =>
      part(value).map(text => hash(Seq("literal", text, dataType.json)))
    case call: UserDefinedExpression if isPlain(expression.dataType) =>
      digestFunction(call, expression)
    case call if isPlainCall(call) =>
      digestCall(call)
    case _ => None
  }

  private def digestColumn(column: Expression): Option[String] =
    columnKey(column).map(key => hash(Seq("column", key, column.dataType.json)))

  private def digestFunction(call: UserDefinedExpression, expression: Expression): Option[String] = {
    val name = call.name.toLowerCase(Locale.ROOT)
    for {
      version <- versionOf(call)
      arguments <- parts(expression.children)
    } yield hash(Seq("function", name, version, expression.dataType.json) ++ arguments)
  }

  private def digestCall(call: Expression): Option[String] = {
    val zones = if (call.isInstanceOf[TimeZoneAwareExpression]) Seq(ExpressionKeys.zones) else Nil
    val head = Seq(call.getClass.getName, call.dataType.json) ++ zones
    parts(call.productIterator.toSeq).map(arguments => hash(head ++ inOrder(call, arguments)))
  }

  /** What an expression is made with; None where it cannot be told from another. */
  private def part(argument: Any): Option[String] = argument match {
    case null =>
      Some("null")
    case child: Expression =>
      digest(child)
    case dataType: DataType =>
      Optional.when(isPlain(dataType))(dataType.json)
    case _: String | _: UTF8String | _: Number | _: Boolean | _: Char | _: Decimal | _: Enumeration#Value =>
      Some(hash(Seq(argument.getClass.getName, argument.toString)))
    case option: Option[_] =>
      digestParts("option", option.toSeq)
    case list: scala.collection.Seq[_] =>
      digestParts("list", list.toSeq)
    case product: Product if product.getClass.getName.startsWith("org.apache.spark.sql.catalyst.") =>
      digestParts(product.getClass.getName, product.productIterator.toSeq)
    case _ => None
  }

  private def digestParts(kind: String, arguments: Seq[Any]): Option[String] =
    parts(arguments).map(digests => hash(kind +: digests))

  private def parts(arguments: Seq[Any]): Option[Seq[String]] = {
    Indexed.all(arguments.map(part))
  }
}

private[spark] object ExpressionKeys {

  /** Settings that change what functions give, and that expressions do not carry. */
  private val Meaningful = Seq(
    "spark.sql.legacy.",
    "spark.sql.ansi.",
    "spark.sql.decimalOperations.",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.json",
    "spark.sql.csv",
    "spark.sql.xml",
    "spark.sql.icu")

  private def isMeaningful(key: String): Boolean =
    Meaningful.exists(key.startsWith) && key != SQLConf.ANSI_ENABLED.key

  private val DefaultOfFiles = "EXISTS_DEFAULT"

  /** The rules of time zones that this Java knows. */
  private lazy val zones = ZoneRulesProvider.getVersions("UTC").lastKey

  // Values of files that lack a column with a default are the catalog's to say: who reads them by their path sees others.
  private def isAsStored(column: Expression, root: Attribute): Boolean =
    ColumnLookup.BoundedColumn.unapply(column) && isPlain(column.dataType) &&
      !root.metadata.contains(DefaultOfFiles)

  /** Whether it is a function of Spark's own, whose value its arguments decide. */
  private def isPlainCall(call: Expression): Boolean = call match {
    case _: UserDefinedExpression | _: InvokeLike | _: PlanExpression[_] | _: Unevaluable => false
    case _ =>
      call.deterministic && isPlain(call.dataType) && call.getClass.getName.startsWith(SparkExpressions)
  }

  private val SparkExpressions = "org.apache.spark.sql.catalyst.expressions."

  // Collations compare by rules that are not ours.
  private def isPlain(dataType: DataType): Boolean = dataType match {
    case struct: StructType =>
      struct.fields.forall(field => isPlain(field.dataType))
    case array: ArrayType =>
      isPlain(array.elementType)
    case map: MapType =>
      isPlain(map.keyType) && isPlain(map.valueType)
    case _ =>
      !TypePromotion.isCollated(dataType)
  }

  /** Sums and products are the same with their operands turned around. */
  private def inOrder(call: Expression, parts: Seq[String]): Seq[String] = call match {
    case _: Add | _: Multiply =>
      parts.take(2).sorted ++ parts.drop(2)
    case _ => parts
  }

  private def hash(parts: Seq[String]): String = {
    val digest = DigestUtils.getSha256Digest
    for (part <- parts) {
      val bytes = part.getBytes(UTF_8)
      digest.update(s"${bytes.length}:".getBytes(UTF_8))
      digest.update(bytes)
    }
    Hex.encodeHexString(digest.digest)
  }
}
