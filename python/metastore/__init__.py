"""Statistics of lakehouse tables: compute them, read them, see what they do for a query.

Example:
    >>> import metastore
    >>> sorted(metastore.__all__)[:3]
    ['AnalyzeReport', 'Answer', 'MetastoreError']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metastore.answers import Answer
    from metastore.api.analyze_functions import analyze, configure, settings
    from metastore.api.export_functions import export
    from metastore.api.query_functions import estimates, explain, filtered_summary, history, whatif
    from metastore.api.read_functions import (
        columns,
        diff,
        files,
        frequencies,
        histogram,
        layout,
        locate,
        open,  # noqa: A004 - `metastore.open` reads well, and nobody imports * from here
        quantiles,
        snapshots,
        summary,
        tables,
        version,
    )
    from metastore.api.report_functions import report
    from metastore.api.store_functions import compact, gc, verify
    from metastore.errors import MetastoreError
    from metastore.pipeline.report import AnalyzeReport
    from metastore.reading.table_answers import Statistics
    from metastore.statistics import Statistic, statistic


__version__ = "0.1.0"

_HOME = {
    "metastore.pipeline.report": ("AnalyzeReport",),
    "metastore.api.analyze_functions": ("analyze", "configure", "settings"),
    "metastore.api.export_functions": ("export",),
    "metastore.api.query_functions": ("estimates", "explain", "filtered_summary", "history", "whatif"),
    "metastore.api.report_functions": ("report",),
    "metastore.api.store_functions": ("compact", "gc", "verify"),
    "metastore.reading.table_answers": ("Statistics",),
    "metastore.answers": ("Answer",),
    "metastore.errors": ("MetastoreError",),
    "metastore.statistics": ("Statistic", "statistic"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_READING = "metastore.api.read_functions"
"""The home of all other public names."""

__all__ = [
    "AnalyzeReport",
    "Answer",
    "MetastoreError",
    "Statistic",
    "Statistics",
    "analyze",
    "columns",
    "compact",
    "configure",
    "diff",
    "estimates",
    "explain",
    "export",
    "files",
    "filtered_summary",
    "frequencies",
    "gc",
    "histogram",
    "history",
    "layout",
    "locate",
    "open",
    "quantiles",
    "report",
    "settings",
    "snapshots",
    "statistic",
    "summary",
    "tables",
    "verify",
    "version",
    "whatif",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: executors import this package, and `metastore --help` answers at once.
    if name not in __all__:
        from metastore.suggestions import suggest_names  # noqa: PLC0415 - only here

        said = f"module 'metastore' has no attribute {name!r}"
        raise AttributeError(". ".join(filter(None, (said, suggest_names(name, __all__)))))
    value = getattr(import_module(_MODULE_OF.get(name, _READING)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
