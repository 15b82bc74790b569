"""Bulk location of keys: bounds, value lists and bloom filters say in which data files to look, Spark looks there."""
