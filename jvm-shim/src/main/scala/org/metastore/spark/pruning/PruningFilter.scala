package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField}
import org.apache.spark.sql.types.{DataType, StringType, StructType}

import org.metastore.spark.reason.{Reason, ReasonCode, Recoverable}
import org.metastore.spark.statistics.columns.FileSetStatistics

/** Says which column of the statistics an attribute of the plan is. */
trait ColumnResolver {

  /**
   * @param root attribute of the scan's output
   * @param path names of the struct fields below it, empty for the attribute itself
   * @return the column's key; `None` where the leaf is no column of the table (metadata columns, computed columns)
   */
  def key(root: Attribute, path: Seq[String]): Option[String]

  /** Whether an attribute tells of a row where it is, and is not stored with it. */
  def isMetadata(root: Attribute): Boolean = ColumnResolver.marks.exists(root.metadata.contains)
}

object ColumnResolver {

  /** How Spark marks hidden columns, and those that its file sources make. */
  private val marks = Seq("__metadata_col", "__file_source_metadata_col")
}

/** A column that a filter asks about, with the type that it has in the query. */
final case class ColumnReference(key: String, name: String, dataType: DataType)

/** What was decided for every file of a scan. */
trait Verdicts {

  def length: Int

  /** False only where no row of the file can match the filter. */
  def isKept(file: Int): Boolean

  def keptCount: Int

  /** Index of the conjunct that excludes the file, the last of several; -1 where it is kept, -2 where it has no rows. */
  def skippedBy(file: Int): Int

  /** Why the file is kept or skipped, naming conjunct and statistic. Built when asked. */
  def reason(file: Int): Reason

  /** Why conjuncts could not be used, by index of the conjunct; absent where they were. */
  def unusedConjuncts: Map[Int, Reason]
}

/** The conjuncts of a scan, compiled once and usable for any list of files. Immutable and thread-safe. */
trait PruningFilter {

  /** The conjuncts as compiled; indices in [[Verdicts]] refer to them. */
  def conjuncts: IndexedSeq[Expression]

  /** The columns whose statistics decide. Empty: nothing can be pruned by this filter. */
  def columns: Seq[ColumnReference]

  /** Keys and types of these columns, as statistics are asked for them. */
  final def columnKeys: Seq[(String, DataType)] = columns.map(use => use.key -> use.dataType)

  /**
   * Finds the files that hold no matching row. Three-valued: a file is skipped only when it is proven that no row can match;
   * all else, every doubt and every exception included, keeps it. Never throws.
   */
  def evaluate(files: FileSetStatistics): Verdicts

  /** The files all of whose physical rows match every conjunct: a proof of its own, no negation of the first. Never throws. */
  def allRowsMatch(files: FileSetStatistics): BitSet
}

object PruningFilter {

  /**
   * Compiles the conjuncts of a scan. Never throws: a conjunct without a rule is left out, with its reason.
   *
   * @param conjuncts the filter above the scan, split at AND, over the scan's output
   * @param allowance how many values may be put through the conjuncts' own expressions
   */
  def compile(
      conjuncts: Seq[Expression],
      resolver: ColumnResolver,
      allowance: EvaluationAllowance = EvaluationAllowance.unlimited): PruningFilter = {
    val columns = new ColumnLookup(resolver)
    val compiler = new Conjuncts(columns, allowance)
    val parts = conjuncts.map { conjunct =>
      try {
        allowance.requireTime()
        compiler.compile(conjunct)
      } catch { case Recoverable(e) => Part(Condition.Unknown(Reason.failure(e)), conjunct, None) }
    }
    val onExpressions = orNone {
      conjuncts.zipWithIndex.flatMap { case (conjunct, i) =>
        replaceExpressions(conjunct, resolver).map(compiler.compile(_) -> i)
      }
    }
    def together(parts: Seq[(Part, Int)]): Seq[(Condition, Seq[Int])] = orNone {
      compiler.together(parts.map(_._1)).map { case (condition, of) => condition -> of.map(parts(_)._2) }
    }
    new ConjunctFilter(
      conjuncts.toIndexedSeq,
      parts.map(compiler.withValues).toIndexedSeq,
      onExpressions.map { case (part, i) => i -> compiler.withValues(part) }.toMap,
      together(parts.zipWithIndex) ++ together(onExpressions),
      allowance)
  }

  private def orNone[A](found: => Seq[A]): Seq[A] =
    try found
    catch { case Recoverable(_) => Nil }

  private def replaceExpressions(conjunct: Expression, resolver: ColumnResolver): Option[Expression] =
    resolver match {
      case columns: ExpressionColumns => columns.replaceIn(conjunct)
      case _ => None
    }

  /** The classes that judge files, for who loads them before the first query. */
  private[spark] def pruningClasses: Seq[Class[_]] =
    Seq(PruningFilter.getClass, classOf[LeafPredicates], classOf[Evaluation])
}

/** Finds the columns of the statistics behind attributes and struct fields. */
private[pruning] final class ColumnLookup(resolver: ColumnResolver) {
  import ColumnLookup._

  /** The column that the expression reads, whatever its type. */
  def find(expression: Expression): Either[Reason, ColumnReference] = expression match {
    case ColumnPath(root, path) if resolver.isMetadata(root) =>
      Left(Reason(ReasonCode.MetadataColumn, "expression" -> expression.sql))
    case ColumnPath(root, path) =>
      val name = (root.name +: path).map(part => if (part.contains(".")) s"`$part`" else part).mkString(".")
      resolver.key(root, path).map(ColumnReference(_, name, expression.dataType))
        .toRight(Reason(ReasonCode.UnknownColumn, "column" -> name))
    case _ => Left(Reason(ReasonCode.UnsupportedExpression, "expression" -> expression.sql))
  }

  /** Why the bounds of a column of this type cannot be used; `None` where they can. */
  def whyNoBounds(expression: Expression): Option[Reason] = expression match {
    case ColumnPath(root, _) if isChar(root) => Some(Reason(ReasonCode.CharPadding, "column" -> root.name))
    case ColumnPath(root, _) => expression.dataType match {
        case s: StringType if s != StringType =>
          Some(Reason(ReasonCode.Collation, "column" -> root.name, "collation" -> s.typeName))
        case _ => None
      }
    case _ => None
  }
}

private[spark] object ColumnLookup {
  private val RawType = "__CHAR_VARCHAR_TYPE_STRING"
  private val Char = "(?i)(?<![a-z])char\\(".r

  /** A column or a field of structs, whose bounds may be used. */
  object BoundedColumn {
    def unapply(expression: Expression): Boolean = expression match {
      case ColumnPath(root, _) => !isChar(root)
      case _ => false
    }
  }

  /** An attribute and the names of the struct fields below it. */
  object ColumnPath {
    def unapply(expression: Expression): Option[(Attribute, Seq[String])] = expression match {
      case attribute: Attribute => Some((attribute, Nil))
      case field: GetStructField => unapply(field.child).map { case (root, path) =>
          (root, path :+ field.child.dataType.asInstanceOf[StructType](field.ordinal).name)
        }
      case _ => None
    }
  }

  /** The columns and fields that an expression reads, one for each place where it does. */
  def leavesOf(expression: Expression): Seq[Expression] = expression match {
    case ColumnPath(_, _) => Seq(expression)
    case other => other.children.flatMap(leavesOf)
  }

  /** Values of CHAR are padded when they are read, and statistics hold them as they are stored. */
  private def isChar(root: Attribute): Boolean =
    root.metadata.contains(RawType) && Char.findFirstIn(root.metadata.getString(RawType)).isDefined
}
