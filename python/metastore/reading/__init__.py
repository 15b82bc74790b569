"""Look-ups on a store: no Spark, no JVM."""
