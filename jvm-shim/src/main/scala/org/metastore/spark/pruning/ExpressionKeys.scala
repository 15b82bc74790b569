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
 * Computes the keys of expressions in the statistics: expressions with equal keys have equal values in every
 * row. A key covers all that the values depend on beside the columns: time zone, ANSI mode, versions of Spark
 * and Java, and the version that the session's settings give a user's function. If this is not certain there
 * is no key.
 *
 * @param conf      the settings of the session that evaluates the expression
 * @param columnKey the key of a column or a field of structs
 */
private[spark] final class ExpressionKeys(conf: SQLConf, columnKey: Expression => Option[String]) {
  import ExpressionKeys._

  private val digests = new IdentityHashMap[Expression, Option[String]]

  /** The hash of the versions and settings that the values of expressions depend on. */
  private lazy val session: String = {
    val settings =
      for ((key, value) <- conf.getAllConfs.toSeq.sorted if isMeaningful(key)) yield Seq(key, value)
    val environment = Seq(
      SPARK_VERSION,
      System.getProperty("java.specification.version"),
      conf.ansiEnabled.toString,
      conf.caseSensitiveAnalysis.toString)
    hash(environment ++ settings.flatten)
  }

  private lazy val versions: Map[String, String] = {
    val functions = new MetastoreConf(conf).functions.map(_.toLowerCase(Locale.ROOT).split(":", 2))
    val named = for (Array(name, version) <- functions) yield name.trim -> version.trim
    named.filter(_._2.nonEmpty).toMap
  }

  /** The version that the settings give a user's function; without one its code may change. */
  def versionOf(function: UserDefinedExpression): Option[String] = function match {
    case call: Expression if call.deterministic =>
      versions.get(function.name.toLowerCase(Locale.ROOT))
    case _ => None
  }

  /** The key of an optimized expression. */
  def toKey(expression: Expression): Option[String] =
    for (tree <- digest(expression)) yield ColumnEntry.ExpressionPrefix + hash(Seq(session, tree))

  private def digest(expression: Expression): Option[String] =
    digests.computeIfAbsent(expression, compute(_))

  private def compute(expression: Expression): Option[String] = expression match {
    case column @ ColumnLookup.ColumnPath(root, _) =>
      if (isAsStored(column, root)) digestColumn(column) else None
    case Literal(value, dataType) if isPlain(dataType) =>
      digestArgument(value).map(text => hash(Seq("literal", text, dataType.json)))
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
      arguments <- digestArguments(expression.children)
    } yield hash(Seq("function", name, version, expression.dataType.json) ++ arguments)
  }

  private def digestCall(call: Expression): Option[String] = {
    val zones = if (call.isInstanceOf[TimeZoneAwareExpression]) Seq(ExpressionKeys.zones) else Nil
    val head = Seq(call.getClass.getName, call.dataType.json) ++ zones
    digestArguments(call.productIterator.toSeq).map(arguments => hash(head ++ inOrder(call, arguments)))
  }

  /** The digest of an argument of an expression; None if equal digests would not prove equal arguments. */
  private def digestArgument(argument: Any): Option[String] = argument match {
    case null =>
      Some("null")
    case child: Expression =>
      digest(child)
    case dataType: DataType =>
      Optional.when(isPlain(dataType))(dataType.json)
    case _: String | _: UTF8String | _: Number | _: Boolean | _: Char | _: Decimal | _: Enumeration#Value =>
      Some(hash(Seq(argument.getClass.getName, argument.toString)))
    case option: Option[_] =>
      digestList("option", option.toSeq)
    case list: scala.collection.Seq[_] =>
      digestList("list", list.toSeq)
    case product: Product if product.getClass.getName.startsWith("org.apache.spark.sql.catalyst.") =>
      digestList(product.getClass.getName, product.productIterator.toSeq)
    case _ => None
  }

  private def digestList(kind: String, arguments: Seq[Any]): Option[String] =
    digestArguments(arguments).map(digests => hash(kind +: digests))

  private def digestArguments(arguments: Seq[Any]): Option[Seq[String]] =
    Indexed.all(arguments.map(digestArgument))
}

private[spark] object ExpressionKeys {

  /** Settings that change the results of functions, and that expressions do not carry. */
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

  /** The version of this Java's time zone rules. */
  private lazy val zones = ZoneRulesProvider.getVersions("UTC").lastKey

  // A file without a column that has a default: the catalog gives it the default, a read by path gives it
  // NULL.
  private def isAsStored(column: Expression, root: Attribute): Boolean =
    ColumnLookup.BoundedColumn.unapply(column) && isPlain(column.dataType) &&
      !root.metadata.contains(DefaultOfFiles)

  /** Whether an expression is one of Spark's own, and its arguments alone decide its value. */
  private def isPlainCall(call: Expression): Boolean = call match {
    case _: UserDefinedExpression | _: InvokeLike | _: PlanExpression[_] | _: Unevaluable => false
    case _ =>
      call.deterministic && isPlain(call.dataType) && call.getClass.getName.startsWith(SparkExpressions)
  }

  private val SparkExpressions = "org.apache.spark.sql.catalyst.expressions."

  // Statistics order texts by their bytes, collations do not.
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

  /**
   * The arguments of a call; the operands of sums and products are sorted, as their order changes nothing.
   */
  private def inOrder(call: Expression, arguments: Seq[String]): Seq[String] = call match {
    case _: Add | _: Multiply =>
      arguments.take(2).sorted ++ arguments.drop(2)
    case _ => arguments
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
