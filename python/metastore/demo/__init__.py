"""The demonstration: real tables, real queries, with and without the Metastore."""
