"""Statistics of lakehouse tables: compute them, read them, see what they do for a query."""

from __future__ import annotations

__version__ = "0.1.0"
