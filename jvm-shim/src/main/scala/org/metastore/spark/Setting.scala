package org.metastore.spark

import java.util.Locale

/** One setting of the Metastore: how it is called, what it means, how its text is read.
  *
  * @param key     name as a Spark conf
  * @param default text of the default; empty: nothing is set
  * @param meaning one sentence for people
  * @param parse   the value of a text, or None where the text is not a value
  */
final case class Setting[T](key: String, default: String, meaning: String, parse: String => Option[T]) {

  /** The same setting as an environment variable: `spark.metastore.cbo.enabled` is `METASTORE_CBO_ENABLED`. */
  val environment: String =
    key.stripPrefix("spark.").replaceAll("([a-z])([A-Z])", "$1_$2").replace('.', '_').toUpperCase(Locale.ROOT)
}

/** A setting's text and where it was found: `spark`, `environment` or `default`. */
final case class SettingValue(text: String, source: String)
