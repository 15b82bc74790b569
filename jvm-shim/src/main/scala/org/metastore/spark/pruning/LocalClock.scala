package org.metastore.spark.pruning

import java.time.{Instant, ZoneId}

import org.apache.spark.sql.catalyst.util.DateTimeConstants.SECONDS_PER_DAY

/**
 * The clock of a time zone, which is set back now and then. Near a change `earliest` and `latest` shift an
 * instant by two days: offsets lie within 18 hours of UTC, so that no change of the clock is larger.
 *
 * @param perSecond units of an instant
 */
private[pruning] final case class LocalClock(zone: ZoneId, perSecond: Long) {
  private val rules = zone.getRules
  private val twoDays = 2 * SECONDS_PER_DAY * perSecond

  /** An instant at which the clock shows a local time no later than at any instant from this one on. */
  def earliest(instant: Long): Long =
    if (isSteady(instant, Math.addExact(instant, twoDays))) instant
    else Math.subtractExact(instant, twoDays)

  /** An instant at which the clock shows a local time no earlier than at any instant up to this one. */
  def latest(instant: Long): Long =
    if (isSteady(Math.subtractExact(instant, twoDays), instant)) instant
    else Math.addExact(instant, twoDays)

  /** Whether the clock is not changed between two instants. */
  private def isSteady(from: Long, to: Long): Boolean =
    if (rules.isFixedOffset) true
    else {
      val secondBefore = Math.floorDiv(from, perSecond) - 1
      val change = rules.nextTransition(Instant.ofEpochSecond(secondBefore))
      change == null || change.toEpochSecond > Math.floorDiv(to, perSecond)
    }
}
