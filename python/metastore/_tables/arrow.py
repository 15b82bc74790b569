"""Answers of Spark as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def arrow_table(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame as an Arrow table.

    Args:
        frame: What to run.

    Returns:
        All its rows.

    Example:
        >>> arrow_table(spark.range(3)).num_rows  # doctest: +SKIP
        3
    """
    return frame.toArrow()
