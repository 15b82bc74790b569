package org.metastore.spark.pruning

import java.time.{Instant, ZoneId}

import org.apache.spark.sql.catalyst.util.DateTimeConstants.SECONDS_PER_DAY

/**
 * The clock of a time zone, which is set back now and then. From an instant on the clock never shows an earlier local time than at
 * `earliest`, and up to it never a later one than at `latest`. Offsets lie within 18 hours of UTC: two days are enough.
 *
 * @param perSecond units of an instant
 */
private[pruning] final case class LocalClock(zone: ZoneId, perSecond: Long) {
  private val rules = zone.getRules
  private val twoDays = 2 * SECONDS_PER_DAY * perSecond

  def earliest(instant: Long): Long =
    if (isSteady(instant, Math.addExact(instant, twoDays))) instant
    else Math.subtractExact(instant, twoDays)

  def latest(instant: Long): Long =
    if (isSteady(Math.subtractExact(instant, twoDays), instant)) instant
    else Math.addExact(instant, twoDays)

  private def isSteady(from: Long, to: Long): Boolean =
    if (rules.isFixedOffset) true
    else {
      val secondBefore = Math.floorDiv(from, perSecond) - 1
      val change = rules.nextTransition(Instant.ofEpochSecond(secondBefore))
      change == null || change.toEpochSecond > Math.floorDiv(to, perSecond)
    }
}
