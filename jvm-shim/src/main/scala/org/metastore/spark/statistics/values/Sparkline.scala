package org.metastore.spark.statistics.values

/** The shape of a distribution in a few characters: `format/sparkline.py` says how, and draws the same. */
object Sparkline {
  private val Levels = "▁▂▃▄▅▆▇█"
  private val Bars = 10

  /** Bars for equally wide ranges of finite values; `None` where values are no numbers. */
  def of(percentiles: IndexedSeq[Any]): Option[String] = {
    val all = percentiles.collect {
      case whole: Long => whole.toDouble; case number: Double if !number.isInfinite => number
    }.sorted
    val step = if (percentiles.headOption.exists(_.isInstanceOf[Long])) 1.0 else 0.0
    val values =
      if (all.length > 2 && (step == 0 || all.last - all.head >= Bars)) all.slice(1, all.length - 1) else all
    val heights = if (values.length < 2) IndexedSeq.empty else countEvenly(values, step)
    if (heights.isEmpty) None
    else {
      val most = heights.foldLeft(0.0)(math.max)
      Some(heights.map(height => Levels((height / most * (Levels.length - 1) + 0.5).toInt)).mkString)
    }
  }

  private def countEvenly(values: IndexedSeq[Double], step: Double): IndexedSeq[Double] = {
    val (low, high) = (values.head, values.last + step)
    val spread = values.indices.map { i =>
      val (start, stop) = (values.indexOf(values(i)), values.lastIndexOf(values(i)) + 1)
      values(i) + step * (i - start) / (stop - start)
    }
    val ends = spread.init :+ high
    if (low.isInfinite || (high - low).isInfinite) IndexedSeq.empty
    else {
      val number =
        if (step > 0 || high == low) math.max(1.0, math.min(Bars.toDouble, high - low)).toInt else Bars
      val inner = (1 until number).map(i => countBelow(low + (high - low) * i / number, ends))
      val below = 0.0 +: inner :+ (values.length - 1).toDouble
      below.zip(below.tail).map { case (before, after) => after - before }
    }
  }

  private def countBelow(value: Double, ends: IndexedSeq[Double]): Double = {
    val i = ends.lastIndexWhere(_ <= value)
    if (i + 1 < ends.length) i + (value - ends(i)) / (ends(i + 1) - ends(i)) else i.toDouble
  }
}
