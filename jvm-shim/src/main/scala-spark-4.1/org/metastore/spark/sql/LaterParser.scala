package org.metastore.spark.sql

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Modifier, Proxy}

import org.apache.spark.sql.catalyst.parser.{CatalystSqlParser, ParserInterface}

/**
 * Our parser on a Spark whose `ParserInterface` has more methods than that of 4.1, with which the parser is
 * compiled: `splitStatements` on 4.3. No extension adds to these, and the parsers of other extensions lack
 * them, too: Spark's own parser answers.
 */
private final class LaterParser(parser: ParserInterface, later: Set[Method]) extends InvocationHandler {
  override def invoke(proxy: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef = {
    val target = if (later.contains(method)) CatalystSqlParser else parser
    try method.invoke(target, arguments: _*)
    catch { case e: InvocationTargetException => throw e.getCause }
  }
}

private object LaterParser {
  private val interface = classOf[ParserInterface]

  private def missingMethods(parser: ParserInterface): Set[Method] = {
    val abstractMethods = interface.getMethods.filter(method => Modifier.isAbstract(method.getModifiers))
    abstractMethods.filterNot(isImplemented(parser, _)).toSet
  }

  /** Returns a parser that has every method of this Spark's `ParserInterface`. */
  def complete(parser: ParserInterface): ParserInterface = {
    val later = missingMethods(parser)
    if (later.isEmpty) parser
    else {
      val handler = new LaterParser(parser, later)
      Proxy.newProxyInstance(
        interface.getClassLoader,
        Array[Class[_]](interface),
        handler).asInstanceOf[ParserInterface]
    }
  }

  /** Matches a parser that `complete` made. */
  def unapply(parser: ParserInterface): Option[LaterParser] =
    if (!Proxy.isProxyClass(parser.getClass)) None
    else
      Proxy.getInvocationHandler(parser) match {
        case ours: LaterParser => Some(ours)
        case _ => None
      }

  private def isImplemented(parser: ParserInterface, method: Method): Boolean = {
    val implementation = parser.getClass.getMethod(method.getName, method.getParameterTypes: _*)
    !Modifier.isAbstract(implementation.getModifiers)
  }
}
