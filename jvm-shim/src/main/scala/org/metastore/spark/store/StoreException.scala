package org.metastore.spark.store

import org.metastore.spark.explain.{Reason, ReasonCode}

/**
 * The statistics cannot be used. Planners turn it into its `reason` and go on without statistics; SQL functions raise it.
 *
 * @param code   error class of the project, as in the Python package's `metastore.errors`
 * @param reason the same fact for `metastore.explain`
 */
sealed abstract class StatisticsException(val code: String, val reason: Reason, cause: Throwable)
  extends RuntimeException(s"[$code] ${reason.sentence}", cause)

/** An object or a manifest is not what was written: wrong digest, wrong length, not readable, contradictory. */
final class DamagedObjectException(val obj: String, val damage: String, cause: Throwable = None.orNull)
  extends StatisticsException(
    "METASTORE_DAMAGED_OBJECT", Reason(ReasonCode.DamagedObject, "object" -> obj, "damage" -> damage), cause)

/** The manifest was written by a later version and needs what this reader does not know. */
final class FormatTooNewException(val needs: String)
  extends StatisticsException("METASTORE_FORMAT_TOO_NEW", Reason(ReasonCode.FormatTooNew, "needs" -> needs), None.orNull)
