"""Spark finds the `metastore` data source here; nothing in this file may fail."""

from contextlib import suppress

# Spark imports every `pyspark_*` module at once: whatever were raised here would hide the sources of others, too.
with suppress(Exception):
    from metastore.spark.data_source import MetastoreDataSource as DefaultSource

__all__ = ["DefaultSource"]
