package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.connector.expressions.{Expression => V2Expression, Literal => V2Literal}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

import org.metastore.spark.pruning.ColumnLookup
import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.objects.DoubleOrder
import org.metastore.spark.statistics.values.ColumnHistogram

/**
 * Finds the predicates by which Iceberg loses rows that match in Spark.
 *
 * Iceberg's bounds, and those of Parquet's row groups, ignore NaN, which is larger than all numbers in Spark.
 * They treat -0.0 as less than 0.0; in Spark they are equal. Bounds of UUIDs are written in the order of
 * unsigned bytes, but compared as two signed numbers.
 *
 * @param histogram the histogram of a column, by its name's parts and a type
 * @param isUuid    whether a column, by its name's parts, holds UUIDs and has statistics
 */
private[scan] final class IcebergSkipping(
    conjuncts: Seq[Expression],
    output: Seq[AttributeReference],
    histogram: (Seq[String], DataType) => Option[ColumnHistogram],
    isUuid: Seq[String] => Boolean) {
  import IcebergSkipping._

  private lazy val columns: Map[Seq[String], ColumnHistogram] = {
    val histograms = for {
      leaf <- conjuncts.flatMap(ColumnLookup.leavesOf) if fractions(leaf.dataType)
      (root, path) <- ColumnLookup.ColumnPath.unapply(leaf)
      column <- output.find(_.exprId == root.exprId)
      name = column.name +: path
      // a column that was FLOAT has statistics of that type
      columnHistogram <- Indexed.firstAnswer(fractions.toSeq)(histogram(name, _))
    } yield name -> columnHistogram
    histograms.toMap
  }

  /** Whether Iceberg may lose rows of the analyzed data files that satisfy the predicate. */
  def losesRows(predicate: Predicate): Boolean = {
    val names = predicate.references.map(_.fieldNames.toSeq).toSeq
    losesFractions(predicate, names) || exists(predicate)(isComparison) && names.exists(isUuid)
  }

  private def losesFractions(predicate: Predicate, names: Seq[Seq[String]]): Boolean = {
    lazy val aboveAll = exists(predicate)(isAboveAll)
    lazy val atZero = exists(predicate)(isAtZero)
    names.flatMap(columns.get(_)).exists { column =>
      column.nans > 0 && aboveAll || atZero && mayHoldZero(column)
    }
  }

  private def mayHoldZero(column: ColumnHistogram): Boolean =
    column.buckets.exists(bucket => bucket.from <= 0 && bucket.until >= 0)
}

private object IcebergSkipping {
  private val fractions = Set[DataType](DoubleType, FloatType)

  private val Comparisons = Set("=", "<=>", "<>", "IN", "<", "<=", ">", ">=")
  private val AboveAll = Set(">", ">=", "NOT")
  private val AtZero = Set("=", "<=>", "IN", ">=", "<=", "NOT")

  private def isComparison(part: V2Expression): Boolean = Comparisons(nameOf(part))

  private def isAboveAll(part: V2Expression): Boolean =
    AboveAll(nameOf(part)) || nameOf(part) == "IN" && exists(part)(isNaN)

  private def isAtZero(part: V2Expression): Boolean = AtZero(nameOf(part)) && exists(part)(isZero)

  private def nameOf(part: V2Expression): String = part match {
    case predicate: Predicate => predicate.name
    case _ => ""
  }

  private def isNaN(part: V2Expression): Boolean = ColumnHistogram.isNaN(valueOf(part))

  private def isZero(part: V2Expression): Boolean = DoubleOrder.isZero(valueOf(part))

  private def valueOf(part: V2Expression): Any = part match {
    case literal: V2Literal[_] => literal.value
    case _ => null
  }

  private def exists(expression: V2Expression)(test: V2Expression => Boolean): Boolean =
    test(expression) || expression.children.exists(exists(_)(test))
}
