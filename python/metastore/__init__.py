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
    from metastore._analyze.report import AnalyzeReport
    from metastore._api.analyzing import analyze, config, configure
    from metastore._api.reading import (
        columns,
        estimates,
        explain,
        files,
        frequencies,
        histogram,
        locate,
        open,  # noqa: A004 - `metastore.open` reads well, and nobody imports * from here
        quantiles,
        snapshots,
        summary,
        tables,
        version,
    )
    from metastore._api.upkeep import compact, gc, verify
    from metastore._read.statistics import Statistics
    from metastore.answers import Answer
    from metastore.errors import MetastoreError
    from metastore.statistics import Statistic, statistic

__version__ = "0.1.0"

_HOME = {
    "metastore._analyze.report": ("AnalyzeReport",),
    "metastore._api.analyzing": ("analyze", "config", "configure"),
    "metastore._api.upkeep": ("compact", "gc", "verify"),
    "metastore._read.statistics": ("Statistics",),
    "metastore.answers": ("Answer",),
    "metastore.errors": ("MetastoreError",),
    "metastore.statistics": ("Statistic", "statistic"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_READING = "metastore._api.reading"
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
    "config",
    "configure",
    "estimates",
    "explain",
    "files",
    "frequencies",
    "gc",
    "histogram",
    "locate",
    "open",
    "quantiles",
    "snapshots",
    "statistic",
    "summary",
    "tables",
    "verify",
    "version",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: executors import this package, and `metastore --help` answers at once.
    if name not in __all__:
        from metastore._texts import suggest_names  # noqa: PLC0415 - only here

        said = f"module 'metastore' has no attribute {name!r}"
        raise AttributeError(". ".join(filter(None, (said, suggest_names(name, __all__)))))
    value = getattr(import_module(_MODULE_OF.get(name, _READING)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
