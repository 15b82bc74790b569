"""Changes of Hudi's schemas by schema-on-read: in these sessions Delta's catalog is the session's, which cannot."""

from __future__ import annotations

ON_READ = {"hoodie.schema.on.read.enable": "true", "hoodie.enable.data.skipping": "false"}
"""Hudi's own skipping compares its statistics of names: it loses rows of a name that means another column now."""
DROPPING = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
"""So Hudi writes to a table that has no longer a column that older files have."""


def alter(spark, table: str, *changes: tuple[str, ...]) -> None:
    """Runs what ALTER TABLE of Hudi's catalog does: `rename old new`, `drop c`, `add c type`, `type c type`."""
    for kind, *words in changes:
        _run(spark, table, kind, words)


def _run(spark, table: str, kind: str, words: list[str]) -> None:
    jvm = spark._jvm
    changes = jvm.org.apache.spark.sql.connector.catalog.TableChange
    path = spark.sparkContext._gateway.new_array(jvm.java.lang.String, len(words[0].split(".")))
    for number, part in enumerate(words[0].split(".")):
        path[number] = part
    if kind == "rename":
        change = changes.renameColumn(path, words[1])
    elif kind == "drop":
        change = changes.deleteColumn(path, False)  # noqa: FBT003 - as Java has it
    else:
        parsed = jvm.org.apache.spark.sql.types.DataType.fromDDL(words[1])
        change = (changes.addColumn if kind == "add" else changes.updateColumnType)(path, parsed)
    as_list = jvm.java.util.Collections.singletonList(change)
    as_seq = jvm.scala.collection.JavaConverters.asScalaBuffer(as_list).toSeq()
    entry = (
        spark._jsparkSession.sessionState()
        .catalog()
        .getTableMetadata(jvm.org.apache.spark.sql.catalyst.TableIdentifier(table))
    )
    kinds = getattr(jvm.org.apache.hudi.internal.schema.action, "TableChange$ColumnChangeID")
    of = {"rename": kinds.UPDATE, "type": kinds.UPDATE, "drop": kinds.DELETE, "add": kinds.ADD}[kind]
    jvm.org.apache.spark.sql.hudi.command.AlterTableCommand(entry, as_seq, of).run(spark._jsparkSession)
    spark.sql(f"REFRESH TABLE {table}")
