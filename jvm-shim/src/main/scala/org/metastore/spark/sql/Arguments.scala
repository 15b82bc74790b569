package org.metastore.spark.sql

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{
  Cast, Expression, Literal, NamedArgumentExpression, RuntimeReplaceable, TimeZoneAwareExpression
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.reason.{BinaryText, Indexed, MetastoreException, NearNames, SqlName}

/** The name of a table function and its arguments. */
trait FunctionSignature {
  def name: String
  def arguments: Seq[Argument]

  final def argumentNames: Seq[String] = arguments.map(_.name)
}

/** An argument of a table function; `default` is its value in a call without it. */
final case class Argument(name: String, required: Boolean, default: Option[Literal])

/**
 * The values of a function's arguments in one call. NULL counts as a missing argument.
 *
 * @param keeps whether a row with a text in a column may pass the query's filters: a function may skip other
 *              rows
 */
final class Arguments(
    function: FunctionSignature,
    values: Map[String, Literal],
    val keeps: (String, String) => Boolean = (_, _) => true) {

  /** The text of an argument that must not be NULL. */
  def text(name: String): String =
    optional(name).getOrElse(throw MetastoreException.invalidArgument(
      s"metastore.${function.name}",
      s"$name is NULL"))

  /** The text of an argument, if given. */
  def optional(name: String): Option[String] = value(name).map {
    case Literal(text: UTF8String, _) => text.toString
    case other => Arguments.cast(other, StringType).toString
  }

  /** The positive whole number of an argument, if given. */
  def positive(name: String): Option[Int] = optional(name).map { text =>
    // Not by CAST, which takes 2.5 for 2.
    val number = Try(new java.math.BigDecimal(text.trim).intValueExact).toOption.filter(_ > 0)
    number.getOrElse {
      throw MetastoreException.invalidArgument(name, s"$text is not a positive whole number")
    }
  }

  /** Whether an argument is true; not given is false. */
  def flag(name: String): Boolean = optional(name).exists { text =>
    text.trim.toLowerCase(Locale.ROOT) match {
      case "true" => true
      case "false" => false
      case _ => throw MetastoreException.invalidArgument(name, s"$text is neither true nor false")
    }
  }

  /** The value of an argument in the call, else its default. */
  def value(name: String): Option[Literal] = {
    def default = function.arguments.find(_.name == name).flatMap(_.default)
    values.get(name).filter(_.value != null).orElse(default)
  }
}

object Arguments {

  /** Binds the expressions of a call to the arguments: by position first, then by name. */
  def bind(function: FunctionSignature, expressions: Seq[Expression]): Arguments = {
    val (positional, named) = expressions.span(!_.isInstanceOf[NamedArgumentExpression])
    if (positional.length > function.arguments.length) {
      throw wrong(
        function,
        s"takes at most ${function.arguments.length} arguments, not ${expressions.length}")
    }
    val byPosition = function.argumentNames.zip(positional)
    val pairs = byPosition ++ named.map(nameAndValue(function, _))
    for ((name, _) <- pairs.groupBy(_._1).find(_._2.length > 1))
      throw wrong(function, s"$name is given twice")
    val values = Indexed.entries(pairs) { case (name, expression) =>
      name -> constant(function, name, expression)
    }
    for (argument <- function.arguments if argument.required && !values.contains(argument.name))
      throw wrong(function, s"the argument ${argument.name} is missing")
    new Arguments(function, values)
  }

  private def nameAndValue(function: FunctionSignature, expression: Expression): (String, Expression) =
    expression match {
      case NamedArgumentExpression(key, value) =>
        val name = key.toLowerCase(Locale.ROOT)
        val names = function.argumentNames
        if (!names.contains(name))
          throw wrong(function, s"there is no argument $key", NearNames.hint(key, names))
        name -> value
      case _ => throw wrong(function, "an argument by position follows one by name")
    }

  private def constant(function: FunctionSignature, name: String, expression: Expression): Literal = {
    if (!expression.resolved || !expression.foldable) {
      throw wrong(function, s"the argument $name must be a constant, not ${expression.sql}")
    }
    val zone = SQLConf.get.sessionLocalTimeZone
    val replaced = expression.transform { case replaceable: RuntimeReplaceable => replaceable.replacement }
    val evaluable = replaced.transform {
      case aware: TimeZoneAwareExpression if aware.timeZoneId.isEmpty => aware.withTimeZone(zone)
    }
    Literal(evaluable.eval(), expression.dataType)
  }

  /** The value of an expression of a call, given by position or by name. */
  private[sql] def valueOf(expression: Expression): Expression = expression match {
    case NamedArgumentExpression(_, value) => value
    case value => value
  }

  /** Rejects a first argument without quotes, which Spark takes for a column. */
  private[sql] def requireQuotes(function: FunctionSignature, expressions: Seq[Expression]): Unit =
    expressions.headOption.map(valueOf) match {
      case Some(UnresolvedAttribute(parts)) =>
        val name = SqlName(parts)
        throw wrong(
          function,
          s"$name is no text",
          s" Name it as one: metastore.${function.name}(${Literal(name).sql}).")
      case _ => ()
    }

  /**
   * A value as people write it: texts in quotes, bytes as `X'00FF'`, numbers without a suffix of their type.
   */
  private[sql] def toText(literal: Literal): String = literal.value match {
    case _ if literal.dataType == StringType => literal.sql
    case bytes: Array[Byte] => BinaryText.render(bytes)
    case _ => Option(cast(literal, StringType)).fold("NULL")(_.toString)
  }

  /** A value in another type, by Spark's CAST in the session's time zone; null where it cannot be. */
  private[sql] def cast(literal: Literal, to: DataType): Any =
    Cast(literal, to, Some(SQLConf.get.sessionLocalTimeZone), ansiEnabled = false).eval()

  private def wrong(function: FunctionSignature, reason: String, hint: String = "") =
    MetastoreException.invalidArgument(s"metastore.${function.name}", reason, hint)
}
