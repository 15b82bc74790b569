"""Data that Python and the shim share.

- `settings.json`: each setting with its type (flag, text, names, formats, whole, size, duration, choice), its default
  as text, its range or choices. `used_by`: the parts that a wrong value stops: `analyze`, `read` (table
  functions, the data source) or `plan` (functions that plan a query; queries themselves go on with the default).
  `table_property`: a table may have it, too, without `spark.` before it; `property_choices`: its values there.
  `own_file`: taken only from files that nobody but the user and root can have written.
- `functions.json`: table functions as `metastore.help()` lists them, and the views of the data source. `without_spark`:
  Python answers it from the store, too. `internal`: called by our own Python alone; `limited`: whether
  `spark.metastore.read.timeout` ends it; `settings`: the part whose settings it uses, `read` by default;
  `comments`: the comments of columns in `DESCRIBE`. A view has the columns of a function or its own, then the fields
  of the kind of `object` that it shows typed; options of `narrowed_by` narrow it.
- `errors.json`: codes with their meanings and the exit codes of commands; `shim`: raised there, too.
- `statistics.json`: the built-in statistics, written out by their descriptors.
- `reasons.json`: the reasons of decisions on scans, conjuncts and data files, by codes; facts stand in braces.
- `formats.json`: table formats; those in jars of their own with the oldest and newest known release, the `packages` of
  their classes, and a class that shows they are there. `version_class`: its method `version` says the release, where
  the manifest of the jar does not. `casts`: readers cast a float through its text; `log_files`: files beside the data
  files may change any value of their rows; `directory`: the listing of a directory is the only metadata.
  A table's folder is recognized by its `log_folder`, else by its `metadata_files`. `named_by_path`: statements may
  name a table by its path, and not only as its catalog does.
- `spark_builds.json`: the builds of the shim, each with the Scala it is compiled for and the lines of Spark that it
  serves; its name begins with the line of Spark that it is compiled for.
- `rules.json`: the conditions that skip data files, for documentation and tests. The rules of a section are about one
  data file with its `columns` and their values; filters of a rule leave it out (`skips`) or match a row (`stays`).
  `spark`, `python`: what is needed to leave it out, `bounds` or a list of all `values`; `why_not_python`: why `prune`
  has no such rule.
- `limits.json`: the limits of readers and writers.

Only data stands here: sentences of errors differ on purpose between a shell, SQL and Python.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from operator import itemgetter
from typing import Any


@cache
def read_contract(name: str) -> Any:
    """Read a document, from a folder or from the archive that executors get."""
    content = pkgutil.get_data(__name__, f"{name}.json")
    return json.loads(content)  # type: ignore[arg-type] # folders and archives have content, or raise an error


def format_names() -> tuple[str, ...]:
    """List the names of all table formats."""
    formats = read_contract("formats")
    return tuple(map(itemgetter("name"), formats))


def formats_with(property_name: str) -> tuple[str, ...]:
    """List the names of the table formats that have a property such as `casts`."""
    return tuple(property_of_formats(property_name))


def property_of_formats(property_name: str) -> dict[str, Any]:
    """Map the names of the table formats that have a property such as `title` to its value."""
    values = {}
    for table_format in read_contract("formats"):
        if property_name in table_format:
            values[table_format["name"]] = table_format[property_name]
    return values


def describe_function(name: str) -> dict[str, Any]:
    """Return the declaration of a table function."""
    declarations = read_contract("functions")["functions"]
    by_name: dict[str, dict[str, Any]] = {declaration["name"]: declaration for declaration in declarations}
    return by_name[name]
