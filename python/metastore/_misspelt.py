"""Variables of the environment that look like settings and are none."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from metastore._texts import find_similar_names
from metastore._visible import get_logger
from metastore.errors import phrase_suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOG = get_logger(__name__)
_PREFIX = "METASTORE_"


def find_misspelt_variables(variables: Iterable[str]) -> dict[str, str]:
    """Those that are near to a setting, each with the hint that names it."""
    from metastore.settings import REGISTRY  # noqa: PLC0415 - it warns of them

    known = {one.environment.removeprefix(_PREFIX) for one in REGISTRY.values()}
    given = {name: name[len(_PREFIX) :].upper() for name in variables if name.upper().startswith(_PREFIX)}
    found = {name: find_similar_names(rest, known, cutoff=0.75) for name, rest in given.items() if rest not in known}
    return {name: phrase_suggestion([_PREFIX + one for one in alike]) for name, alike in found.items() if alike}


def warn_of_misspelt_variables(variables: Iterable[str]) -> None:
    """Names them in the log, each once."""
    for name, hint in find_misspelt_variables(variables).items():
        _warn(name, hint)


@cache
def _warn(name: str, hint: str) -> None:
    _LOG.warning("the environment variable %s is no setting. %s", name, hint)
