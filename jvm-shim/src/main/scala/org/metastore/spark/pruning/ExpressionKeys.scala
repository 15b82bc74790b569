package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8
import java.time.zone.ZoneRulesProvider
import java.util.{IdentityHashMap, Locale}

import scala.collection.mutable

import org.apache.commons.codec.binary.Hex
import org.apache.commons.codec.digest.DigestUtils

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ArrayType, DataType, Decimal, MapType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.statistics.objects.Manifest

/**
 * By what an expression over columns is known to statistics: equal keys, equal values of every row. What the values depend on
 * beside the columns is part of it: zone, ANSI mode, the versions of Spark and Java, and of users' functions the version that the
 * session's settings give them. An expression of which that is not certain has no key.
 *
 * @param conf      the settings of the session that evaluates the expression
 * @param columnKey the key of a column or a field of structs
 */
private[spark] final class ExpressionKeys(conf: SQLConf, columnKey: Expression => Option[String]) {
  import ExpressionKeys._

  private val digests = new IdentityHashMap[Expression, Option[String]]

  private lazy val session: String = {
    val set = conf.getAllConfs.toSeq.filter { case (key, _) =>
      Meaningful.exists(key.startsWith) && key != SQLConf.ANSI_ENABLED.key
    }
    hash(Seq(
      SPARK_VERSION,
      System.getProperty("java.specification.version"),
      conf.ansiEnabled.toString,
      conf.caseSensitiveAnalysis.toString) ++ set.sorted.flatMap { case (key, value) => Seq(key, value) })
  }

  private lazy val versions: Map[String, String] =
    new MetastoreConf(conf).functions.map(_.toLowerCase(Locale.ROOT).split(":", 2))
      .collect { case Array(name, version) if version.trim.nonEmpty => name.trim -> version.trim }.toMap

  /** The version that the user gives a function; None where its code may become another one under the same name. */
  def versionOf(function: UserDefinedExpression): Option[String] = function match {
    case call: Expression if call.deterministic => versions.get(function.name.toLowerCase(Locale.ROOT))
    case _ => None
  }

  /** The key of an optimized expression. */
  def of(expression: Expression): Option[String] =
    digest(expression).map(tree => Manifest.ExpressionPrefix + hash(Seq(session, tree)))

  private def digest(expression: Expression): Option[String] = {
    if (!digests.containsKey(expression)) digests.put(expression, compute(expression))
    digests.get(expression)
  }

  private def compute(expression: Expression): Option[String] = expression match {
    case column @ ColumnLookup.ColumnPath(root, _) =>
      if (isAsStored(column, root))
        columnKey(column).map(key => hash(Seq("column", key, column.dataType.json)))
      else None
    case Literal(value, dataType) if isPlain(dataType) =>
      part(value).map(text => hash(Seq("literal", text, dataType.json)))
    case call: UserDefinedExpression if isPlain(expression.dataType) =>
      for (version <-
          versionOf(call);
        arguments <- all(expression.children))
        yield hash(Seq("function", call.name.toLowerCase(Locale.ROOT), version, expression.dataType.json) ++ arguments)
    case call if isPlainCall(call) =>
      val arguments = all(call.productIterator.toSeq)
      val zones = call match {
        case _: TimeZoneAwareExpression => Seq(ExpressionKeys.zones)
        case _ => Nil
      }
      arguments.map(parts =>
        hash(Seq(call.getClass.getName, call.dataType.json) ++ zones ++ inOrder(call, parts)))
    case _ => None
  }

  /** What an expression is made with; None where it cannot be told from another. */
  private def part(argument: Any): Option[String] = argument match {
    case null => Some("null")
    case child: Expression => digest(child)
    case dataType: DataType => if (isPlain(dataType)) Some(dataType.json) else None
    case _: String | _: UTF8String | _: Number | _: Boolean | _: Char | _: Decimal | _: Enumeration#Value =>
      Some(hash(Seq(argument.getClass.getName, argument.toString)))
    case one: Option[_] => all(one.toSeq).map(parts => hash("option" +: parts))
    case many: scala.collection.Seq[_] => all(many.toSeq).map(parts => hash("list" +: parts))
    case of: Product if of.getClass.getName.startsWith("org.apache.spark.sql.catalyst.") =>
      all(of.productIterator.toSeq).map(parts => hash(of.getClass.getName +: parts))
    case _ => None
  }

  private def all(arguments: Seq[Any]): Option[Seq[String]] = {
    val parts = arguments.map(part)
    if (parts.forall(_.isDefined)) Some(parts.flatten) else None
  }
}

private[spark] object ExpressionKeys {

  /** Settings that change what functions give, and that expressions do not carry. */
  private val Meaningful =
    Seq(
      "legacy.",
      "ansi.",
      "decimalOperations.",
      "mapKeyDedupPolicy",
      "json",
      "csv",
      "xml",
      "icu").map("spark.sql." + _)

  private val DefaultOfFiles = "EXISTS_DEFAULT"

  /** The rules of time zones that this Java knows. */
  private lazy val zones = ZoneRulesProvider.getVersions("UTC").lastKey

  // Values of files that lack a column with a default are the catalog's to say: who reads them by their path sees others.
  private def isAsStored(column: Expression, root: Attribute): Boolean =
    ColumnLookup.BoundedColumn.unapply(column) && isPlain(column.dataType) &&
      !root.metadata.contains(DefaultOfFiles)

  /** Whether it is a function of Spark's own, whose value its arguments decide. */
  private def isPlainCall(call: Expression): Boolean = call.deterministic && isPlain(call.dataType) &&
    call.getClass.getName.startsWith("org.apache.spark.sql.catalyst.expressions.") && (call match {
      case _: UserDefinedExpression | _: InvokeLike | _: PlanExpression[_] | _: Unevaluable => false
      case _ => true
    })

  // Collations compare by rules that are not ours.
  private def isPlain(dataType: DataType): Boolean = dataType match {
    case text: StringType => text == StringType
    case struct: StructType => struct.fields.forall(field => isPlain(field.dataType))
    case array: ArrayType => isPlain(array.elementType)
    case map: MapType => isPlain(map.keyType) && isPlain(map.valueType)
    case _ => true
  }

  /** Sums and products are the same with their operands turned around. */
  private def inOrder(call: Expression, parts: Seq[String]): Seq[String] = call match {
    case _: Add | _: Multiply => parts.take(2).sorted ++ parts.drop(2)
    case _ => parts
  }

  private def hash(parts: Seq[String]): String = {
    val digest = DigestUtils.getSha256Digest
    parts.foreach { part =>
      val bytes = part.getBytes(UTF_8)
      digest.update(s"${bytes.length}:".getBytes(UTF_8))
      digest.update(bytes)
    }
    Hex.encodeHexString(digest.digest)
  }
}

/**
 * Conditions on expressions that have statistics, read as conditions on columns: attributes that stand for the expressions.
 *
 * @param names    the SQL of the expressions by their keys
 * @param conf     the settings of the session whose query is planned
 * @param resolver finds the columns that they read
 */
private[spark] final class ExpressionColumns(
    names: Map[String, String],
    conf: => SQLConf,
    resolver: ColumnResolver)
  extends ColumnResolver {
  private val columns = mutable.HashMap.empty[String, Attribute]
  private val keyOf = mutable.HashMap.empty[ExprId, String]

  private lazy val keys = new ExpressionKeys(
    conf,
    {
      case ColumnLookup.ColumnPath(root, path) if !resolver.isMetadata(root) => resolver.key(root, path)
      case _ => None
    })

  override def key(root: Attribute, path: Seq[String]): Option[String] = keyOf.get(root.exprId) match {
    case None => resolver.key(root, path)
    case own => own.filter(_ => path.isEmpty)
  }

  override def isMetadata(root: Attribute): Boolean = resolver.isMetadata(root)

  /** An equal condition that reads columns in place of expressions; None where it holds no such expression. */
  def replaceIn(condition: Expression): Option[Expression] =
    if (names.isEmpty) None
    else {
      val replaced = condition.transformDown {
        case Stored(column) => column
      }
      if (replaced.fastEquals(condition)) None else Some(replaced)
    }

  private object Stored {
    def unapply(expression: Expression): Option[Attribute] =
      if (expression.children.isEmpty) None
      else for (key <- keys.of(expression); name <- names.get(key))
        yield columnOf(key, name, expression.dataType)
  }

  private def columnOf(key: String, name: String, dataType: DataType): Attribute = columns.getOrElseUpdate(
    key, {
      val column = AttributeReference(name, dataType)()
      keyOf(column.exprId) = key
      column
    })
}
