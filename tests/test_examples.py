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


@pytest.mark.parametrize("name", ["metastore", "metastore.errors", "metastore.statistics"])
def test_public_modules_show_examples(name):
    examples = doctest.DocTestFinder(exclude_empty=False).find(importlib.import_module(name))
    assert any(test.examples or ">>>" in test.docstring for test in examples)
