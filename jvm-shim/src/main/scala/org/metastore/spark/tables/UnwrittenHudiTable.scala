package org.metastore.spark.tables

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.types.StructType

/** A Hudi table without any instant: Hudi shows a relation without a file index for it. */
final class EmptyHudiTable private (root: Path, schema: StructType) extends TableFacts {
  override val format: String = "hudi"
  override val uuid: String = ParquetTable.uuidOf(root)
  override val location: String = root.toString
  override val current: Option[String] = None
  override def lineage(snapshot: String): Iterator[String] = Iterator.single(snapshot)
  override def snapshot(text: String): Option[String] = None
  override def snapshotAt(micros: Long): Option[String] = None
  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] = HudiTable.leaves(schema)
  override def dataFiles(snapshot: String): Seq[DataFile] = Nil
  override def facts: SnapshotFacts = SnapshotFacts(None, Nil)
  override def properties: Map[String, String] = Map.empty
  override def partitionColumns: Seq[String] = Nil
  override def fieldIds: Map[String, Long] = Map.empty
}

object EmptyHudiTable {
  private val RelationClass = "org.apache.hudi.EmptyRelation"

  /** The table of a relation that is Hudi's empty one. */
  def of(relation: AnyRef, entry: Option[CatalogTable], schema: StructType): Option[LakeTable] =
    entry.filter(_ => relation.getClass.getName == RelationClass)
      .map(table => new EmptyHudiTable(HudiTable.qualify(new Path(table.location), SparkSession.active), schema))
}
