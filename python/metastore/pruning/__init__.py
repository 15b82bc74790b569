"""Decides which data files a condition excludes: the shim's rules, for engines without a JVM.

A file is read unless statistics exclude it. Values compare as in Spark: NaN is the largest double, -0.0 equals 0.0, and
texts compare by their bytes.
"""
