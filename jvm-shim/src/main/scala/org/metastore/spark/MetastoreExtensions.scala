package org.metastore.spark

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

/** Everything that the shim adds to a session, one line each.
  *
  * It registers itself and may be listed in `spark.sql.extensions` too, so `apply` can run twice for one session: each
  * line must be harmless when repeated.
  */
class MetastoreExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = ()
}
