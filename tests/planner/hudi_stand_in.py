"""Classes with the names and members of Hudi's that the shim knows, for a Spark that Hudi's jar cannot be had for.

They read a directory of Parquet files as the base files of a Hudi table: what is tested with them is what the shim
recognises, leaves alone and drops, not Hudi.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

_HUDI = "package org.apache.hudi;"
_SOURCES = (
    f"""{_HUDI}
public interface HoodiePartitionFileSliceMapping {{ scala.Option getSlice(String fileId); }}
""",
    f"""{_HUDI}
public class Spark41HoodiePartitionFileSliceMapping
    extends org.apache.spark.sql.catalyst.expressions.GenericInternalRow implements HoodiePartitionFileSliceMapping {{
  private final java.util.Map slices;
  public Spark41HoodiePartitionFileSliceMapping(java.util.Map slices) {{
    super(new Object[0]);
    this.slices = slices;
  }}
  public scala.Option getSlice(String fileId) {{ return scala.Option.apply(slices.get(fileId)); }}
  // Tasks do not know these classes.
  protected Object writeReplace() {{
    return new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(new Object[0]);
  }}
}}
""",
    f"""{_HUDI}
public class FileSlice {{
  private final String path;
  private final long size;
  public FileSlice(String path, long size) {{ this.path = path; this.size = size; }}
  public java.util.Optional getBaseFile() {{ return java.util.Optional.of(this); }}
  public String getPath() {{ return path; }}
  public long getFileSize() {{ return size; }}
}}
""",
    f"""{_HUDI}
public class HoodieTableMetaClient {{
  private final java.util.Map properties;
  private final String schemas;
  public HoodieTableMetaClient(java.util.Map properties, String schemas) {{
    this.properties = properties;
    this.schemas = schemas;
  }}
  public HoodieTableMetaClient getTableConfig() {{ return this; }}
  public java.util.Map propsMap() {{ return properties; }}
  public String getSchemaFolderName() {{ return schemas; }}
}}
""",
    f"""{_HUDI}
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

public class HoodieFileIndex implements FileIndex {{
  public final FileIndex files;
  private final String basePath;
  private final HoodieTableMetaClient metaClient;
  private final java.util.Collection logged;
  private final java.util.List asked = new java.util.ArrayList();

  public HoodieFileIndex(FileIndex files, String path, HoodieTableMetaClient client, java.util.Collection logged) {{
    this.files = files;
    this.basePath = path;
    this.metaClient = client;
    this.logged = logged;
  }}
  public java.util.List asked() {{ return asked; }}
  public HoodieTableMetaClient metaClient() {{ return metaClient; }}
  public String getBasePath() {{ return basePath; }}
  public String[] getPartitionColumns() {{ return new String[0]; }}

  public Seq rootPaths() {{ return files.rootPaths(); }}
  public String[] inputFiles() {{ return files.inputFiles(); }}
  public void refresh() {{ files.refresh(); }}
  public long sizeInBytes() {{ return files.sizeInBytes(); }}
  public org.apache.spark.sql.types.StructType partitionSchema() {{ return files.partitionSchema(); }}
  public scala.Option metadataOpsTimeNs() {{ return scala.Option.empty(); }}

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {{
    asked.add(dataFilters);
    java.util.List found = new java.util.ArrayList();
    java.util.Iterator all = CollectionConverters.asJava(files.listFiles(partitionFilters, dataFilters)).iterator();
    while (all.hasNext()) {{
      PartitionDirectory directory = (PartitionDirectory) all.next();
      java.util.List plain = new java.util.ArrayList();
      java.util.List changed = new java.util.ArrayList();
      java.util.Map slices = new java.util.HashMap();
      java.util.Iterator each = CollectionConverters.asJava(directory.files()).iterator();
      while (each.hasNext()) {{
        FileStatusWithMetadata file = (FileStatusWithMetadata) each.next();
        String name = file.getPath().getName();
        if (logged.contains(name)) {{
          changed.add(file);
          slices.put(name.split("_")[0], new FileSlice(file.getPath().toString(), file.getLen()));
        }} else plain.add(file);
      }}
      found.add(new PartitionDirectory(directory.values(), CollectionConverters.asScala(plain).toSeq()));
      found.add(new PartitionDirectory(
        new Spark41HoodiePartitionFileSliceMapping(slices), CollectionConverters.asScala(changed).toSeq()));
    }}
    return CollectionConverters.asScala(found).toSeq();
  }}
}}
""",
    f"""{_HUDI}
public class HoodieIncrementalFileIndex extends HoodieFileIndex {{
  public HoodieIncrementalFileIndex(org.apache.spark.sql.execution.datasources.FileIndex files, String path,
      HoodieTableMetaClient client, java.util.Collection logged) {{
    super(files, path, client, logged);
  }}
}}
""",
    """package org.apache.spark.sql.hudi.command;
public class UpdateHoodieTableCommand {
  public static long run(org.apache.spark.sql.classic.Dataset target) { return target.count(); }
}
""",
)


class Hudi:
    """The stand-in classes in one session's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self.loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        for source in _SOURCES:
            compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(self.loader)
            compiler.cook(source)
            self.loader = compiler.getClassLoader()

    def index(self, root: Path, logged: Iterable[str] = (), of: str = "HoodieFileIndex", **properties: str) -> Any:
        """A file index over the Parquet files of a folder; slices of the `logged` ones have log files."""
        files = self.spark.read.parquet(str(root))._jdf.queryExecution().analyzed().relation().location()
        client = self._new("HoodieTableMetaClient", self._map(properties), f"{root}/.hoodie/.schema")
        names = self.jvm.java.util.ArrayList()
        for name in logged:
            names.add(name)
        return self._new(of, files, f"file:{root}", client, names)

    def read(self, root: Path, index: Any) -> DataFrame:
        """The relation that Hudi makes of an index for a read by path."""
        plain = self.spark.read.parquet(str(root))._jdf.queryExecution().analyzed().relation()
        relation = self.jvm.org.apache.spark.sql.execution.datasources.HadoopFsRelation(
            index,
            plain.partitionSchema(),
            plain.dataSchema(),
            plain.bucketSpec(),
            plain.fileFormat(),
            plain.options(),
            self.spark._jsparkSession,
        )
        return DataFrame(self.spark._jsparkSession.baseRelationToDataFrame(relation), self.spark)

    def counted_by_a_command(self, frame: DataFrame) -> int:
        """The rows of a query that a command of Hudi runs."""
        command = self.loader.loadClass("org.apache.spark.sql.hudi.command.UpdateHoodieTableCommand")
        (run,) = (method for method in command.getMethods() if method.getName() == "run")
        return int(run.invoke(None, self._array([frame._jdf])))

    def _new(self, name: str, *arguments: Any) -> Any:
        constructor = self.loader.loadClass(f"org.apache.hudi.{name}").getConstructors()[0]
        return constructor.newInstance(self._array(arguments))

    def _array(self, values: Iterable[Any]) -> Any:
        elements = list(values)
        array = self.spark.sparkContext._gateway.new_array(self.jvm.Object, len(elements))
        for position, value in enumerate(elements):
            array[position] = value
        return array

    def _map(self, entries: dict[str, str]) -> Any:
        made = self.jvm.java.util.HashMap()
        for key, value in entries.items():
            made.put(key.replace("__", "."), value)
        return made
