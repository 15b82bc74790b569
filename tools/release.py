"""Makes the artefacts of a release, and proves what can be proven of them: it publishes nothing and signs nothing.

    uv run python tools/release.py [--no-matrix] [--out dist]

The tree is clean and its version is the newest of CHANGELOG.md; sdist and wheel, built twice from the commit in two
empty folders, have the same bytes; `twine check` finds nothing; the oldest releases of the table formats go through
their story (tests/versions/matrix.py --quick). Ends with 1 at the first of these that does not hold, and says how to
mend it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
_RELEASED = re.compile(r"^## \[(\d+\.\d+\.\d+\S*)\] - \d{4}-\d\d-\d\d$", re.MULTILINE)
_SECTION = re.compile(r"^## \[(.+?)\]", re.MULTILINE)
_STATED = {
    "pyproject.toml": re.compile(r'^version = "(.+)"$', re.MULTILINE),
    "python/metastore/__init__.py": re.compile(r'^__version__ = "(.+)"$', re.MULTILINE),
}


class NotReady(Exception):  # noqa: N818 - the name says what is wrong
    """Something does not hold; the message says what, and how to mend it."""


def main() -> None:
    """Makes the artefacts, step by step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-matrix", action="store_true", help="leave the matrix of releases out")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the artefacts (default: dist)")
    given = parser.parse_args()
    try:
        release(given.out, matrix=not given.no_matrix)
    except NotReady as wrong:
        sys.exit(f"Not ready: {wrong}")


def release(out: Path, *, matrix: bool) -> None:
    """Everything that this command does.

    Raises:
        NotReady: Something does not hold.
    """
    require_clean_tree()
    version = require_one_version(ROOT)
    _say(f"Version {version}, {_git('rev-parse', '--short', 'HEAD')}")
    artefacts = build_twice(out)
    check_metadata(artefacts)
    if matrix:
        _say("The oldest releases of the table formats ...")
        _run("tests/versions/matrix.py", sys.executable, str(ROOT / "tests/versions/matrix.py"), "--quick")
    for artefact in artefacts:
        _say(f"{hashlib.sha256(artefact.read_bytes()).hexdigest()}  {artefact}")
    _say("Nothing was published, tagged or signed.")


def require_clean_tree() -> None:
    """Refuses what is not committed.

    Raises:
        NotReady: There are changes.
    """
    if changes := _git("status", "--porcelain"):
        raise NotReady(f"the tree has changes; commit or remove them:\n{changes}")


def require_one_version(root: Path) -> str:
    """The version that pyproject.toml, the package and the newest section of the changelog have alike.

    Raises:
        NotReady: They differ, or the newest section is of no version yet.
    """
    stated = {name: _first(pattern, root / name) for name, pattern in _STATED.items()}
    version = stated["pyproject.toml"]
    for name, found in stated.items():
        if found != version:
            raise NotReady(f"{name} says version {found}, pyproject.toml {version}: make them equal")
    section, released = _first(_SECTION, root / "CHANGELOG.md"), _first(_RELEASED, root / "CHANGELOG.md")
    if section != version or released != version:
        raise NotReady(
            f"the newest section of CHANGELOG.md is [{section}]: give it the heading `## [{version}] - YYYY-MM-DD`"
        )
    return version


def build_twice(out: Path) -> list[Path]:
    """Builds sdist and wheel from the commit in two empty folders, and keeps them if their bytes are equal.

    Raises:
        NotReady: A build failed, or the two differ.
    """
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        first, second = (_build(Path(scratch) / name) for name in ("first", "second"))
        if differing := [name for name in first if first[name] != second.get(name)]:
            raise NotReady(f"two builds of one commit differ in {', '.join(differing)}: see {_keep(scratch)}")
        out.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(Path(scratch) / "first" / "dist" / name, out)) for name in sorted(first)]


def check_metadata(artefacts: list[Path]) -> None:
    """Lets twine look at metadata and the rendered README.

    Raises:
        NotReady: It finds something.
    """
    _run("twine check", sys.executable, "-m", "twine", "check", "--strict", *map(str, artefacts))


def _build(folder: Path) -> Mapping[str, bytes]:
    _say(f"Building in {folder} ...")
    tree = folder / "tree"
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607
    with tarfile.open(fileobj=BytesIO(archive)) as opened:
        opened.extractall(tree, filter="data")
    epoch = {"SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct")}
    build = ["uv", "build", "--quiet", "--python", sys.executable, "--out-dir", str(folder / "dist")]
    _run("uv build", *build, cwd=tree, environment=epoch)  # with what uv.lock has of hatchling and pyspark
    made = [file for file in (folder / "dist").iterdir() if file.suffix in (".whl", ".gz")]
    return {file.name: file.read_bytes() for file in made}


def _keep(scratch: str) -> str:
    kept = tempfile.mkdtemp(prefix="release-differs-")
    shutil.copytree(scratch, kept, dirs_exist_ok=True)
    return kept


def _first(pattern: re.Pattern[str], file: Path) -> str:
    found = pattern.search(file.read_text("utf-8"))
    return found[1] if found else ""


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def _run(what: str, *command: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    if subprocess.run(command, cwd=cwd, check=False, env={**os.environ, **(environment or {})}).returncode:
        raise NotReady(f"{what} failed, as said above")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
