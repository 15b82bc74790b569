package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._

import org.antlr.v4.runtime.{CharStreams, CommonTokenStream, Token}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer

import org.metastore.spark.reason.{MetastoreException, NearNames, Optional}

/**
 * Lets people write `metastore.summary(...)`. Spark's grammar has no table functions with a name of two
 * parts, so the two parts become one, `metastore_summary`, padded with blanks so that positions in error
 * messages stay right.
 */
object FunctionNames {
  private val Schema = "metastore"
  private val Prefix = s"${Schema}_"

  /** Returns the text with our table functions written in one part; most texts are returned unread. */
  def rewrite(sql: String): String =
    if (sql.toLowerCase(Locale.ROOT).contains(Schema)) new FunctionNames(sql).rewriteText
    else sql

  /** Whether the session has a function `metastore_<name>`, be it ours or the user's. */
  private def isRegistered(name: String): Boolean = SparkSession.getActiveSession.exists { session =>
    session.sessionState.catalog.isRegisteredFunction(FunctionIdentifier(s"$Prefix$name"))
  }

  /** The tokens of a text that Spark's parser would see, without blanks and comments. */
  private[sql] def tokens(sql: String): IndexedSeq[Token] = {
    // Spark 3.5's lexer knows upper-case letters only. A change of ASCII letters moves no position.
    val upper = sql.map(c => if (c >= 'a' && c <= 'z') (c - 32).toChar else c)
    val lexer = new SqlBaseLexer(CharStreams.fromString(upper))
    lexer.removeErrorListeners()
    val stream = new CommonTokenStream(lexer)
    stream.fill()
    stream.getTokens.asScala.filter(t =>
      t.getChannel == Token.DEFAULT_CHANNEL && t.getType != Token.EOF).toIndexedSeq
  }
}

private final class FunctionNames(sql: String) {
  private val tokens = FunctionNames.tokens(sql)

  def rewriteText: String = {
    tokens.indices.foreach(refuseMisspelt)
    val text = new StringBuilder(sql)
    for (i <- tokens.indices if isFunctionName(i)) {
      val from = offset(tokens(i).getStartIndex)
      val until = offset(tokens(i + 2).getStopIndex + 1)
      val name = s"${FunctionNames.Schema}_${word(i + 2).toLowerCase(Locale.ROOT)}"
      text.replace(from, until, name.padTo(until - from, ' '))
    }
    text.toString
  }

  private def isFunctionName(i: Int): Boolean =
    dotted(i).exists(TableFunctions.names.contains) && isTablePosition(i)

  /** The name after `metastore.` in a call; there may be no such function. */
  private def dotted(i: Int): Option[String] =
    if (word(i).equalsIgnoreCase(FunctionNames.Schema) && word(i + 1) == "." && word(i + 3) == "(")
      Some(word(i + 2).toLowerCase(Locale.ROOT))
    else None

  /** Raises an error with the near names of a misspelt function: Spark's own error has none. */
  private def refuseMisspelt(i: Int): Unit = {
    val names = TableFunctions.names
    for (name <- dotted(i).orElse(undotted(i)))
      if (!names.contains(name) && isTablePosition(i) && NearNames.find(name, names).nonEmpty)
        throw MetastoreException.functionNotFound(name, names)
  }

  /** The name after `metastore_` that is called, unless the session has such a function. */
  private def undotted(i: Int): Option[String] = {
    val plain = word(i).toLowerCase(Locale.ROOT)
    val name = plain.stripPrefix(FunctionNames.Prefix)
    val isCalled = name != plain && word(i + 1) == "("
    Optional.when(isCalled && !FunctionNames.isRegistered(name))(name)
  }

  /**
   * Whether a table may be at token `i`: after FROM, JOIN, LATERAL, or in a list or parenthesis after them.
   */
  private def isTablePosition(i: Int): Boolean = word(i - 1) match {
    case "FROM" | "JOIN" | "LATERAL" => true
    case "(" => isTablePosition(i - 1)
    case "," => isInFromList(i - 2)
    case _ => false
  }

  @scala.annotation.tailrec
  private def isInFromList(i: Int): Boolean = word(i) match {
    case ")" => isInFromList(opening(i) - 1)
    case "(" => isTablePosition(i)
    case "FROM" => true
    case "" | "SELECT" | "WHERE" | "BY" | "HAVING" | "SET" | "VALUES" | ";" => false
    case _ => isInFromList(i - 1)
  }

  /** The index of the parenthesis that the one at `closing` closes, or -1. */
  private def opening(closing: Int): Int = {
    var (i, depth) = (closing - 1, 1)
    while (i >= 0 && depth > 0) {
      if (word(i) == ")") depth += 1 else if (word(i) == "(") depth -= 1
      if (depth > 0) i -= 1
    }
    i
  }

  /** The token's text in upper case, a quoted name without its quotes; empty outside the text. */
  private def word(i: Int): String =
    if (i < 0 || i >= tokens.length) ""
    else {
      val text = tokens(i).getText
      // Not by the token's type: its number differs between lines of Spark, and the compiler copies it.
      if (text.length >= 2 && text.startsWith("`") && text.endsWith("`")) text.substring(1, text.length - 1)
      else text
    }

  /** Tokens count code points, strings count UTF-16 units. */
  private def offset(codePoints: Int): Int = sql.offsetByCodePoints(0, codePoints)
}
