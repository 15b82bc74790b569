"""Everything that touches Spark: sessions, SQL functions, the data source. pyspark is imported when it is used."""
