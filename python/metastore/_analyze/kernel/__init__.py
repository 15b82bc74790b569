"""The computing kernel: numpy and pyarrow alone, because executors have nothing else."""

from metastore._analyze.kernel.column import ColumnKernel
from metastore._analyze.kernel.detail import DETAIL, Detail
from metastore._analyze.kernel.errors import CannotRead
from metastore._analyze.kernel.footer import analyze_footer
from metastore._analyze.kernel.leaves import FileColumn
from metastore._analyze.kernel.merge import distinct_of, merged_column, reduce_column
from metastore._analyze.kernel.own import Shipped, of_constant, unpacked, with_own
from metastore._analyze.kernel.read import FileStatistics, analyze_parquet, read_values
from metastore._analyze.kernel.sketch import parsed
from metastore._analyze.kernel.statistics import (
    ColumnStatistics,
    constant,
    row_of,
    sketches_table,
    summary_table,
    table_sketches_table,
    table_summary_table,
)
from metastore._analyze.kernel.together import reduce_columns

__all__ = [
    "DETAIL",
    "CannotRead",
    "ColumnKernel",
    "ColumnStatistics",
    "Detail",
    "FileColumn",
    "FileStatistics",
    "Shipped",
    "analyze_footer",
    "analyze_parquet",
    "constant",
    "distinct_of",
    "merged_column",
    "of_constant",
    "parsed",
    "read_values",
    "reduce_column",
    "reduce_columns",
    "row_of",
    "sketches_table",
    "summary_table",
    "table_sketches_table",
    "table_summary_table",
    "unpacked",
    "with_own",
]
