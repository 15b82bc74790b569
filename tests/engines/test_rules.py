"""The rules in Python against the shim's own cases: what the shim keeps is kept, and nearly all that it skips is skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engines.facts import columns_of, is_kept

CASES = json.loads((Path(__file__).parents[1] / "cases" / "pruning.json").read_text())
