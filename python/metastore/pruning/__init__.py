"""Data files that a condition leaves to be read: the shim's rules, for engines without a JVM.

A file is read unless statistics exclude it. Values compare as in Spark: NaN is the largest double, -0.0 equals 0.0,
texts go by their bytes.
"""
