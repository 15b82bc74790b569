package org.metastore.spark.tables

import java.util.Locale

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Finds the table format behind what Spark knows of a table. */
object TableFormats {

  /** Whether a text says where a table is, rather than its name; as in Python. */
  def isLocation(text: String): Boolean = !text.contains('`') && (text.contains('/') || text.startsWith("."))

  private val V1Class = "org.apache.spark.sql.connector.catalog.V1Table"

  /** The table that a catalog loads. */
  def of(table: Table): Option[LakeTable] =
    if (IcebergTable.is(table)) Some(IcebergTable(table)) else if (DeltaTable.is(table)) Some(DeltaTable(table)) else None

  /** The table of an analyzed relation without aliases. */
  def of(relation: LogicalPlan): Option[LakeTable] = relation match {
    case v2: DataSourceV2Relation => of(v2.table)
    case v1: LogicalRelation => v1.relation match {
      case files: HadoopFsRelation if DeltaTable.is(files) => Some(DeltaTable(files))
      case files: HadoopFsRelation if HudiTable.is(files) => Some(HudiTable(files))
      case files: HadoopFsRelation if ParquetTable.is(files) => Some(ParquetTable(files))
      case other =>
        HudiTable.requireIndex(other)
        EmptyHudiTable.of(other, v1.catalogTable, v1.schema)
    }
    case _ => None
  }

  /** Which table it is that a catalog loads, without listing its files. */
  def identity(session: SparkSession, table: Table): Option[TableReference] = of(table).orElse(for {
    format <- format(table)
    location <- Reflection.call[CatalogTable](table, "v1Table").storage.locationUri
  } yield DirectoryReference(format, HudiTable.qualify(new Path(location), session)))

  /** The format of a table that a catalog loads, without asking the table for anything. */
  def format(table: Table): Option[String] =
    if (IcebergTable.is(table)) Some("iceberg") else if (DeltaTable.is(table)) Some("delta") else if (HudiTable.is(table)) Some("hudi")
    else if (table.getClass.getName == V1Class) Option(table.properties.get(TableCatalog.PROP_PROVIDER)).flatMap(ofProvider)
    else None

  /** The format of a table that the session's catalog says to be of a provider, where such tables are no plug-in's. */
  def ofProvider(provider: String): Option[String] = Some(provider.toLowerCase(Locale.ROOT)).filter(byProvider)

  /** The format whose files a name such as `` parquet.`/path` `` reads without a catalog. */
  def ofPath(name: Seq[String]): Option[String] = name match {
    case Seq(format, path) if path.contains('/') => ofProvider(format)
    case _ => None
  }

  /** The relation of such a name, where Spark resolves it for its own file formats alone. */
  def atPath(session: SparkSession, name: Seq[String]): Option[LogicalPlan] =
    ofPath(name).filter(_ == HudiTable.Format).map(format => session.read.format(format).load(name.last).queryExecution.analyzed)

  private val byProvider = Set(ParquetTable.Format, HudiTable.Format)
}
