"""The story of `story.py` on every release of every table format, each in a Spark of its own.

    uv run python tests/versions/matrix.py [--spark 3.5] [--format hudi] [--quick]

A line of Spark that this Python does not have gets an environment of its own, such as `.venv-spark40`. Prints one
table; what is under way goes to stderr. Exits with 1 where something is not as docs/gaps.json says.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from metastore import jars
from metastore.cli.doctor_checks import read_shim_properties

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gaps import PARQUET, RELEASES, Release

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
PYSPARKS = {"3.5": "3.5.8", "4.0": "4.0.1", "4.1": "4.1.4", "4.2": "4.2.1", "4.3": "4.3.0"}
BESIDE = (
    "pandas>=2.2,<3",
    "setuptools",
    "jinja2",
    "numpy",
    "obstore",
    "pyarrow",
    "pydantic-settings[toml]",
    "pytest",
    "rich",
    "typer",
)
PREDICATES = {"quick": 30, "whole": 300}
MINUTES = 20


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", choices=sorted(PYSPARKS), help="this line of Spark alone")
    parser.add_argument(
        "--format", choices=sorted({one.format for one in (*RELEASES, *PARQUET)}), help="this table format alone"
    )
    parser.add_argument("--quick", action="store_true", help="the oldest releases alone, with fewer predicates")
    parser.add_argument("--seed", type=int, default=20, help="of the random predicates")
    given = parser.parse_args()
    chosen = [
        one
        for one in (*RELEASES, *PARQUET)
        if given.spark in (None, one.spark) and given.format in (None, one.format) and (one.quick or not given.quick)
    ]
    predicates = PREDICATES["quick" if given.quick else "whole"]
    told = [(one, _run(one, predicates, given.seed)) for one in chosen]
    Console(width=None if sys.stdout.isatty() else 160).print(_table(told))
    wrong = [
        f"{one.title} on Spark {one.spark}, {seen['table']}: {what}"
        for one, of in told
        for seen in of
        for what in seen["wrong"]
    ]
    print("\n".join(wrong) or f"{len(told)} releases: as declared.")
    sys.exit(1 if wrong or not told else 0)


def _run(release: Release, predicates: int, seed: int) -> list[dict[str, Any]]:
    began, name = time.monotonic(), f"{release.title} on Spark {release.spark}"
    _say(f"{name} ...")
    seen = _outcomes(release, predicates, seed)
    verdict = "not as declared" if any(one["wrong"] for one in seen) else "as declared"
    _say(f"{name}: {verdict}, {time.monotonic() - began:.0f} s")
    return seen


def _outcomes(release: Release, predicates: int, seed: int) -> list[dict[str, Any]]:
    python = interpreter(release.spark)
    if release.format != "parquet":
        jars.fetch_all(release.jar)
    command = [python, ROOT / "tests" / "versions" / "story.py", release.jar]
    more = ["--predicates", str(predicates), "--seed", str(seed)]
    paths = {"PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("python", "tests"))}
    try:
        done = subprocess.run(
            [*command, *more],
            env={**os.environ, **paths},
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
            check=True,
        )
        return list(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as failed:
        return [_failed(failed.stderr.strip().splitlines() or ["it ended without a word"])]
    except subprocess.TimeoutExpired:
        return [_failed([f"not done after {MINUTES} minutes"])]


def _failed(said: Sequence[str]) -> dict[str, Any]:
    for line in said[-30:]:
        _say(f"    {line}")
    return {"table": "", "rows": 0, "files": 0, "read": 0, "asked": 0, "refused": "", "wrong": [said[-1]]}


def interpreter(line: str) -> str:
    """Returns a Python that has PySpark of a line and our jar beside it: this one, or one that is made for it."""
    if metadata.version("pyspark").startswith(f"{line}."):
        return sys.executable
    folder, version = ROOT / f".venv-spark{line.replace('.', '')}", PYSPARKS[line]
    python = folder / "bin" / "python"
    if not python.exists():
        _say(f"PySpark {version} into {folder} ...")
        _uv("venv", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--python", str(python), f"pyspark=={version}", *BESIDE)
    (pyspark,) = folder.glob("lib/python3*/site-packages/pyspark")
    _say(f"our jar for Spark {line} ...")
    jar = pyspark / "jars" / jars.SHIM
    jar.unlink(missing_ok=True)  # an installed one may be a link to the cache of uv
    if _serves(jars.shim(), line):
        shutil.copyfile(jars.shim(), jar)  # the build that users get there: it is compiled for an older line
        return str(python)
    build = [sys.executable, str(ROOT / "jvm-shim" / "hatch_build.py"), "--pyspark", str(pyspark)]
    subprocess.run([*build, "--out", str(jar)], check=True)
    return str(python)


def _serves(shim: Path, line: str) -> bool:
    properties = read_shim_properties(shim) or {"lines": ""}
    return line in properties["lines"].split()


def _uv(*arguments: str) -> None:
    subprocess.run(["uv", "--quiet", *arguments], check=True)  # noqa: S607 - uv runs this command


def _table(told: Sequence[tuple[Release, Sequence[dict[str, Any]]]]) -> Table:
    found = Table("Spark", "Release", "Table", "Rows", "Files read", "Queries compared", "Result")
    for release, seen in told:
        for one in seen:
            result = (
                f"{len(one['wrong'])} wrong"
                if one["wrong"]
                else (one["refused"] and f"refused: {one['refused']}") or "as without us"
            )
            found.add_row(
                release.spark,
                release.title,
                one["table"],
                str(one["rows"]),
                f"{one['read']} of {one['files']}",
                str(one["asked"]),
                result,
            )
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
