"""The examples in docstrings do what they say; those that need a table are shown, not run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import metastore

MODULES = [module.name for module in pkgutil.walk_packages(metastore.__path__, "metastore.")]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=OPTIONS).failed == 0


def test_there_are_examples():
    found = (doctest.DocTestFinder().find(importlib.import_module(name)) for name in MODULES)
    assert sum(len(test.examples) for tests in found for test in tests) > len(MODULES)
