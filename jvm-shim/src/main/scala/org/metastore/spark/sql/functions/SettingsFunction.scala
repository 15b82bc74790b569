package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.MetastoreConf
import org.metastore.spark.sql.{Answer, Argument, Arguments, TableFunction}

/** `metastore.settings()`: one row a setting. */
object SettingsFunction extends TableFunction {
  override val name = "settings"
  override val arguments: Seq[Argument] = Nil
  override val schema: StructType = StructType.fromDDL("name STRING, value STRING, source STRING, default STRING, meaning STRING")
  override val meaning = "The settings of this session, and where each value comes from"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val conf = MetastoreConf.of(session)
    MetastoreConf.all.map { setting =>
      val found = conf.textOf(setting)
      Answer.row(setting.key, found.text, found.source, setting.default, setting.meaning)
    }
  }
}
