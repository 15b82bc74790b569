package org.metastore.spark.pruning

import java.time.{Instant, ZoneId}

import org.apache.spark.sql.catalyst.util.DateTimeConstants.SECONDS_PER_DAY

/**
 * The clocks of a zone, which are set back now and then: no instant from one on shows an earlier local time than `earliest` of it,
 * none up to one a later than `latest`. Offsets lie within 18 hours of UTC, so that those of instants two days apart do not turn them.
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
