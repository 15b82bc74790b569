package org.metastore.spark.analyze

import scala.collection.JavaConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{Dataset, Row}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.tables.{FileRelation, TableFormats}

/** Reads the rows of some data files, over py4j: a filter on the file's name would still read all files. */
object VersionedRows {

  /**
   * The table that rows come from, with all of its columns, but only some of its data files. These are the
   * input files of the result.
   *
   * @param versions the version of a data file's rows as text, by its location; a file that has another
   *                 version by now is left out
   * @throws IllegalArgumentException the rows are not of one table whose files have versions
   */
  def select(rows: Dataset[Row], versions: java.util.Map[String, String]): Dataset[Row] = {
    val versionOf = Indexed.entries(versions.asScala) { case (location, version) =>
      new Path(location) -> version.toLong
    }
    val relations = rows.queryExecution.analyzed.collect { case FileRelation(relation) => relation }
    val selected = relations.flatMap(TableFormats.withVersions(_, versionOf))
    require(selected.length == 1, s"the rows are of ${selected.length} tables whose files have versions")
    rows.sparkSession.baseRelationToDataFrame(selected.head)
  }
}
