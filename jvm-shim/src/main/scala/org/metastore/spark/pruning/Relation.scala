package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions._

import org.metastore.spark.pruning.LiteralValues.Key

/** How two values of a row are compared. */
private[pruning] sealed trait Relation {

  /** The relation of the right value to the left one. */
  def flipped: Relation

  /** The relation that holds of two values where this one does not. */
  def negated: Relation

  /** Whether no two values within the bounds of a file are so related. */
  def never(bounds: BoundsComparison, file: Int): Boolean

  /** Whether all values within the bounds of a file are so related. */
  def always(bounds: BoundsComparison, file: Int): Boolean

  /** The values that are so related to a key, or those that are not; None where there cannot be any. */
  def values(key: Key): Option[ValueSet]

  /** Whether `values` are those that are so related. */
  def isInside: Boolean = true
}

private[pruning] object Relation {

  object Less extends Relation {
    override def flipped: Relation = Greater
    override def negated: Relation = GreaterOrEqual
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isNotBelow(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isBelow(file)
    override def values(key: Key): Option[ValueSet] = key.valuesBelow(included = false)
  }

  object LessOrEqual extends Relation {
    override def flipped: Relation = GreaterOrEqual
    override def negated: Relation = Greater
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isAbove(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isNotAbove(file)
    override def values(key: Key): Option[ValueSet] = key.valuesBelow(included = true)
  }

  object Greater extends Relation {
    override def flipped: Relation = Less
    override def negated: Relation = LessOrEqual
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isNotAbove(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isAbove(file)
    override def values(key: Key): Option[ValueSet] = key.valuesAbove(included = false)
  }

  object GreaterOrEqual extends Relation {
    override def flipped: Relation = LessOrEqual
    override def negated: Relation = Less
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isBelow(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isNotBelow(file)
    override def values(key: Key): Option[ValueSet] = key.valuesAbove(included = true)
  }

  sealed abstract class Equality extends Relation {
    override def flipped: Relation = this
    override def negated: Relation = NotEqual
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isApart(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isSame(file)
    override def values(key: Key): Option[ValueSet] = Some(LiteralValues.point(key))
  }

  object Equal extends Equality

  /** As `Equal` of values that are not NULL. */
  object NullSafeEqual extends Equality

  object NotEqual extends Relation {
    override def flipped: Relation = this
    override def negated: Relation = Equal
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isSame(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isApart(file)
    override def values(key: Key): Option[ValueSet] = Some(LiteralValues.point(key))
    override def isInside: Boolean = false
  }

  private val Written: Map[Class[_], Relation] = Map(
    classOf[LessThan] -> Less,
    classOf[LessThanOrEqual] -> LessOrEqual,
    classOf[GreaterThan] -> Greater,
    classOf[GreaterThanOrEqual] -> GreaterOrEqual,
    classOf[EqualTo] -> Equal,
    classOf[EqualNullSafe] -> NullSafeEqual)

  /** A comparison's operands and their relation; a literal stands on the right, wherever it is written. */
  object Comparison {
    def unapply(comparison: BinaryComparison): Option[(Expression, Relation, Expression)] = {
      val written = Written.get(comparison.getClass)
      if (comparison.left.isInstanceOf[Literal])
        written.map(relation => (comparison.right, relation.flipped, comparison.left))
      else written.map(relation => (comparison.left, relation, comparison.right))
    }
  }
}
