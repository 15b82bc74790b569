"""What Python and the shim have to say alike, as data.

- `settings.json`: each setting with its type (flag, text, names, formats, whole, size, duration, choice), its default
  as text, its range or choices. `used_by`: who is stopped by a value that it cannot have: `analyze`, `read` (table
  functions, the data source) or `plan` (functions that plan a query; queries themselves go on with the default).
  `table_property`: a table may have it, too, without `spark.` before it; `property_choices`: its values there.
  `own_file`: taken only from files that nobody but the user and root can have written.
- `functions.json`: table functions as `metastore.help()` lists them, and the views of the data source. `without_spark`:
  Python answers it from the store, too. `internal`: asked by our own Python; `limited`: whether
  `spark.metastore.read.timeout` ends it; `settings`: whose settings it uses, those of `read` where nothing is said;
  `comments`: what `DESCRIBE` says of a column. A view has the columns of a function or its own, then the fields of the
  kind of `object` that it shows typed; options of `narrowed_by` narrow it.
- `errors.json`: codes, what they mean, with which exit code a command ends; `shim`: raised there, too.
- `statistics.json`: the built-in statistics, written out by their descriptors.
- `reasons.json`: why a scan, a conjunct or a data file was treated as it was, by codes; facts stand in braces.
- `formats.json`: table formats; of those in jars of their own the oldest and newest release that are known, the
  `packages` of their classes, and one class that shows they are there. `casts`: readers cast a float through its text;
  `log_files`: files beside the data files may change any value of their rows.
- `spark_builds.json`: the builds of the shim, each with the Scala it is compiled for and the lines of Spark that it
  serves; its name begins with the line of Spark that it is compiled for.
- `limits.json`: what readers take at most, and how far writers go.

Only data stands here: sentences of errors differ on purpose between a shell, SQL and Python.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Any


@cache
def read_contract(name: str) -> Any:
    """Reads a document, from a folder or from the archive that executors get."""
    content = pkgutil.get_data(__name__, f"{name}.json")
    if content is None:
        raise FileNotFoundError(f"{name}.json is missing beside {__file__}")
    return json.loads(content)


def format_names(having: str | None = None) -> tuple[str, ...]:
    """The names of all table formats, or of those of which something is said to be so, such as `casts`."""
    return tuple(one["name"] for one in read_contract("formats") if having is None or one.get(having))


def describe_function(name: str) -> dict[str, Any]:
    """What is declared of a table function."""
    found: dict[str, Any] = next(one for one in read_contract("functions")["functions"] if one["name"] == name)
    return found
