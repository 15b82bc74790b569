"""ANALYZE: finds what is missing, computes it in Spark jobs, reduces it to table level, commits.

Executors import modules of this package: nothing here imports Spark, a store or a table format before it is used.
"""
