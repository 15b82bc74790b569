// A catalog whose tables are of classes that extend Iceberg's SparkTable, as those of other catalogs do. The session's
// `tests.table` names the class.

import java.util.Collections;
import java.util.Map;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class ExtendedCatalog extends org.apache.iceberg.spark.SparkCatalog {
  public Table loadTable(Identifier name) throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException {
    SparkTable found = (SparkTable) super.loadTable(name);
    String kind = ((SparkSession) SparkSession.active()).conf().get("tests.table", "Named");
    if (kind.equals("Named")) return new NamedTable(found);
    if (kind.equals("Delegating")) return new DelegatingTable(found);
    if (kind.equals("Filtered")) return new FilteredTable(found);
    if (kind.equals("OwnScan")) return new OwnScanTable(found);
    if (kind.equals("Hidden")) return new HiddenColumnTable(found);
    if (kind.equals("Swapped")) return new SwappedColumnsTable(found);
    return new PinnedTable(found);
  }
}

/** Other names and properties, and no DELETE from metadata alone. */
class NamedTable extends SparkTable {
  NamedTable(SparkTable own) { super(own.table()); }

  public String name() { return "named." + super.name(); }

  public Map properties() { return Collections.singletonMap("by", "a catalog"); }

  public Transform[] partitioning() { return new Transform[0]; }

  public boolean canDeleteWhere(Predicate[] predicates) { return false; }
}

/** Scans of the table that Iceberg's catalog made. */
class DelegatingTable extends SparkTable {
  final SparkTable own;

  DelegatingTable(SparkTable own) {
    super(own.table());
    this.own = own;
  }

  public StructType schema() { return own.schema(); }

  public Column[] columns() { return own.columns(); }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return own.newScanBuilder(options); }
}

/** Scans that Iceberg was asked to filter. */
class FilteredTable extends SparkTable {
  FilteredTable(SparkTable own) { super(own.table()); }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    ScanBuilder builder = super.newScanBuilder(options);
    Predicate isThere = new Predicate("IS_NOT_NULL", new FieldReference[] {
      new FieldReference(scala.collection.JavaConverters.asScalaBuffer(Collections.singletonList("id")).toList())
    });
    ((SupportsPushDownV2Filters) builder).pushPredicates(new Predicate[] { isThere });
    return builder;
  }
}

/** Scans of a class of its own, which may do anything to the rows. */
class OwnScanTable extends SparkTable {
  OwnScanTable(SparkTable own) { super(own.table()); }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    final Scan scan = super.newScanBuilder(options).build();
    return new ScanBuilder() {
      public Scan build() { return new OwnScan(scan); }
    };
  }
}

class OwnScan implements Scan {
  final Scan own;

  OwnScan(Scan own) { this.own = own; }

  public StructType readSchema() { return own.readSchema(); }

  public Batch toBatch() { return own.toBatch(); }
}

/** Spark is shown fewer columns. */
class HiddenColumnTable extends SparkTable {
  HiddenColumnTable(SparkTable own) { super(own.table()); }

  public Column[] columns() { return (Column[]) java.util.Arrays.copyOf(super.columns(), 1); }

  public StructType schema() { return new StructType().add("id", "bigint"); }
}

/** Spark is shown the names of two columns of one type at each other's places. */
class SwappedColumnsTable extends SparkTable {
  SwappedColumnsTable(SparkTable own) { super(own.table()); }

  public Column[] columns() {
    Column[] columns = (Column[]) super.columns().clone();
    Column first = columns[0];
    columns[0] = columns[1];
    columns[1] = first;
    return columns;
  }
}

/** Scans of an older snapshot than the table says. */
class PinnedTable extends SparkTable {
  PinnedTable(SparkTable own) { super(own.table()); }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    long first = ((org.apache.iceberg.HistoryEntry) table().history().get(0)).snapshotId();
    return SparkTable.create(table(), org.apache.iceberg.spark.TimeTravel.version(String.valueOf(first))).newScanBuilder(options);
  }
}
