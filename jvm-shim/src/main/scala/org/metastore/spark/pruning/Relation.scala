package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions._

import org.metastore.spark.pruning.LiteralValues.Key

/** A comparison of two values of a row. */
private[pruning] sealed trait Relation {

  /** The relation with its sides exchanged: `<` becomes `>`. */
  def flipped: Relation

  /** The opposite relation: `<` becomes `>=`. */
  def negated: Relation

  /** Whether the relation is false for all values within the bounds of a file. */
  def never(bounds: BoundsComparison, file: Int): Boolean

  /** Whether the relation is true for all values within the bounds of a file. */
  def always(bounds: BoundsComparison, file: Int): Boolean

  /** The values that have this relation to a key, or the other values; None if there are none. */
  def values(key: Key): Option[ValueSet]

  /** Whether `values` are those with this relation. */
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

  /** `<=>`: `Equal` for values that are not NULL. */
  object NullSafeEqual extends Equality

  object NotEqual extends Relation {
    override def flipped: Relation = this
    override def negated: Relation = Equal
    override def never(bounds: BoundsComparison, file: Int): Boolean = bounds.isSame(file)
    override def always(bounds: BoundsComparison, file: Int): Boolean = bounds.isApart(file)
    override def values(key: Key): Option[ValueSet] = Some(LiteralValues.point(key))
    override def isInside: Boolean = false
  }

  private val Relations: Map[Class[_], Relation] = Map(
    classOf[LessThan] -> Less,
    classOf[LessThanOrEqual] -> LessOrEqual,
    classOf[GreaterThan] -> Greater,
    classOf[GreaterThanOrEqual] -> GreaterOrEqual,
    classOf[EqualTo] -> Equal,
    classOf[EqualNullSafe] -> NullSafeEqual)

  /** Matches a comparison: its operands and their relation, with a literal on the right. */
  object Comparison {
    def unapply(comparison: BinaryComparison): Option[(Expression, Relation, Expression)] =
      for (relation <- Relations.get(comparison.getClass)) yield {
        if (comparison.left.isInstanceOf[Literal])
          (comparison.right, relation.flipped, comparison.left)
        else (comparison.left, relation, comparison.right)
      }
  }
}
