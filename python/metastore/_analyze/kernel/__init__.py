"""The computing kernel: numpy and pyarrow alone, because executors have nothing else."""

from metastore._analyze.kernel.column import ColumnKernel
from metastore._analyze.kernel.detail import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore._analyze.kernel.errors import UnsupportedDataFile
from metastore._analyze.kernel.footer import analyze_footer
from metastore._analyze.kernel.leaves import FileColumn
from metastore._analyze.kernel.merge import count_distinct, merge_column, reduce_column
from metastore._analyze.kernel.own import (
    StatisticPickle,
    apply_to_constant,
    unpickle_statistics,
    wrap_with_user_defined,
)
from metastore._analyze.kernel.read import FileStatistics, analyze_parquet, read_column_values
from metastore._analyze.kernel.sketch import parse_sketches
from metastore._analyze.kernel.statistics import (
    ColumnStatistics,
    constant_statistics,
    partial_aggregate_row,
    sketch_rows,
    summary_rows,
    table_sketch_rows,
    table_summary_rows,
)
from metastore._analyze.kernel.together import reduce_columns

__all__ = [
    "DEFAULT_DETAIL_LIMITS",
    "ColumnKernel",
    "ColumnStatistics",
    "DetailLimits",
    "FileColumn",
    "FileStatistics",
    "StatisticPickle",
    "UnsupportedDataFile",
    "analyze_footer",
    "analyze_parquet",
    "apply_to_constant",
    "constant_statistics",
    "count_distinct",
    "merge_column",
    "parse_sketches",
    "partial_aggregate_row",
    "read_column_values",
    "reduce_column",
    "reduce_columns",
    "sketch_rows",
    "summary_rows",
    "table_sketch_rows",
    "table_summary_rows",
    "unpickle_statistics",
    "wrap_with_user_defined",
]
