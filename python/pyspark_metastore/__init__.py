"""Spark finds the `metastore` data source here; nothing in this file may fail."""

from metastore._spark.datasource import MetastoreDataSource as DefaultSource

__all__ = ["DefaultSource"]
