package org.metastore.spark.statistics.values

/** Draws the shape of a distribution in a few characters, as `format/sparkline.py` does. */
object Sparkline {
  private val Levels = "▁▂▃▄▅▆▇█"
  private val Bars = 10
  private val FewestValues = 3

  /** Draws bars for equally wide ranges of finite values; None if the values are no numbers. */
  def draw(percentiles: IndexedSeq[Any]): Option[String] = {
    val areIntegers = percentiles.headOption.exists(_.isInstanceOf[Long])
    val values = percentiles.collect {
      case whole: Long => whole.toDouble
      case number: Double if !number.isInfinite => number
    }
    if (values.length < FewestValues) None
    else drawBars(countEvenly(inner(values.sorted, areIntegers), areIntegers))
  }

  /** The values without the least and the greatest; all values if they are few integers, one for each bar. */
  private def inner(values: IndexedSeq[Double], areIntegers: Boolean): IndexedSeq[Double] = {
    val areFew = areIntegers && values.last - values.head < Bars
    if (areFew) values else values.slice(1, values.length - 1)
  }

  private def drawBars(heights: IndexedSeq[Double]): Option[String] =
    if (heights.isEmpty) None
    else {
      val highest = heights.max
      val levels = heights.map(height => (height / highest * (Levels.length - 1) + 0.5).toInt)
      Some(levels.map(Levels(_)).mkString)
    }

  private def countEvenly(values: IndexedSeq[Double], areIntegers: Boolean): IndexedSeq[Double] =
    if (values.length < 2) IndexedSeq.empty
    else {
      val ends = if (areIntegers) spreadEqual(values) else values
      val width = ends.last - ends.head
      if (width.isInfinite) IndexedSeq.empty
      else {
        val fewBars = math.max(1.0, math.min(Bars.toDouble, width)).toInt
        val bars = if (areIntegers || width == 0) fewBars else Bars
        val inner = (1 until bars).map(bar => countBelow(ends.head + width * bar / bars, ends))
        val counts = 0.0 +: inner :+ (ends.length - 1).toDouble
        for ((before, after) <- counts.zip(counts.tail)) yield after - before
      }
    }

  /** Spreads equal integers evenly over the range up to the next one. */
  private def spreadEqual(values: IndexedSeq[Double]): IndexedSeq[Double] = {
    val spread = values.indices.map { i =>
      val (start, stop) = (values.indexOf(values(i)), values.lastIndexOf(values(i)) + 1)
      values(i) + (i - start).toDouble / (stop - start)
    }
    spread.init :+ (values.last + 1.0)
  }

  private def countBelow(value: Double, ends: IndexedSeq[Double]): Double = {
    val i = ends.lastIndexWhere(_ <= value)
    if (i + 1 < ends.length) i + (value - ends(i)) / (ends(i + 1) - ends(i))
    else i.toDouble
  }
}
