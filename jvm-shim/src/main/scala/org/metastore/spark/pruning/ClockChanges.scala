package org.metastore.spark.pruning

import java.time.ZoneId

import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_SECOND

/** Functions from instants to local times, or back; clock changes make either side jump. */
private[pruning] object ClockChanges {

  /**
   * A function whose bounds are widened by a day, unless the zone has no clock changes.
   *
   * @param argument a day in units of the argument
   * @param result   a day in units of the result
   */
  def around(zone: ZoneId, argument: Long, result: Long)(function: Long => Long): Step = {
    def low(value: Long): Long = Math.subtractExact(function(Math.subtractExact(value, argument)), result)
    def high(value: Long): Long = Math.addExact(function(Math.addExact(value, argument)), result)
    if (zone.getRules.isFixedOffset) Step.Monotone.exactly(function)
    else Step.Monotone(low, high)
  }

  /** A function of the local time that a zone's clock shows at instants in microseconds. */
  def onLocalTime(zone: ZoneId)(function: Long => Long): Step = {
    val clock = LocalClock(zone, MICROS_PER_SECOND)
    Step.Monotone(value => function(clock.earliest(value)), value => function(clock.latest(value)))
  }
}
