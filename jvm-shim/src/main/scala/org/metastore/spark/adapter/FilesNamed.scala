package org.metastore.spark.adapter

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo, Expression, In, InSet, Literal, MetadataAttribute}
import org.apache.spark.sql.types.StringType

/** The data files that a query itself names, by Iceberg's metadata column `_file`: rows of other files cannot match. */
private[adapter] object FileColumnFilter {
  private val Column = "_file"

  /** The paths that every row of the scan comes from; None where the query names no files. */
  def by(conjuncts: Seq[Expression], output: Seq[AttributeReference]): Option[Set[String]] = {
    val files = output.filter(column => column.name == Column && column.dataType == StringType && MetadataAttribute.isValid(column.metadata))
    def isFile(expression: Expression) = files.exists(_.semanticEquals(expression))
    conjuncts.collect {
      case EqualTo(file, Literal(path, StringType)) if isFile(file) => texts(Seq(path))
      case EqualTo(Literal(path, StringType), file) if isFile(file) => texts(Seq(path))
      case In(file, paths) if isFile(file) && paths.forall(_.isInstanceOf[Literal]) => texts(paths.map(_.asInstanceOf[Literal].value))
      case InSet(file, paths) if isFile(file) => texts(paths)
    }.reduceOption(_ intersect _)
  }

  // Null equals nothing.
  private def texts(values: Iterable[Any]): Set[String] = values.filter(_ != null).map(_.toString).toSet
}
