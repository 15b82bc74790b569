package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.{MetastoreConf, NearNames}
import org.metastore.spark.sql.{ResultRow, Argument, Arguments, TableFunction}

/** `metastore.settings()`: one row a setting. */
object SettingsFunction extends TableFunction {
  override val name = "settings"
  override val arguments: Seq[Argument] = Nil
  override val schema: StructType = StructType.fromDDL("name STRING, value STRING, source STRING, default STRING, meaning STRING, problem STRING")
  override val meaning = "The settings of this session: the value in force, where it comes from, and what is wrong with what is set"
  override val needsSettings = false

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val conf = MetastoreConf.of(session)
    val known = MetastoreConf.all.map { setting =>
      conf.findInvalid(setting) match {
        case Some(wrong) =>
          val problem = s"'${wrong.text}' (${wrong.source}) is no value of this setting: the default is in force"
          ResultRow.row(setting.key, setting.default, "default", setting.default, setting.meaning, problem)
        case None =>
          val found = conf.resolve(setting)
          ResultRow.row(setting.key, found.text, found.source, setting.default, setting.meaning, None)
      }
    }
    val unknown = conf.unknownKeys.toSeq.sorted.map { case (key, text) =>
      (key, text, "spark", NearNames.phraseSuggestion(key, MetastoreConf.all.map(_.key), "spark.metastore."))
    }
    known ++ (unknown ++ MetastoreConf.findMisspelt(sys.env)).map { case (name, text, source, hint) =>
      ResultRow.row(name, text, source, None, None, s"there is no such setting.$hint")
    }
  }
}
