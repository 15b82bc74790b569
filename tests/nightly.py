"""Parameters of tests that are run in part each time, and in full every night."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def others_nightly(cases: Iterable[Any], first: int = 1) -> list[Any]:
    """Return the cases as parameters of a test: those after the `first` ones are run by `-m slow` alone."""
    parameters = []
    for number, case in enumerate(cases):
        if number < first:
            parameters.append(case)
            continue
        values = case if isinstance(case, tuple) else (case,)
        parameters.append(pytest.param(*values, marks=pytest.mark.slow))
    return parameters
