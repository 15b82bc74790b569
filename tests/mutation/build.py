"""Compiles the shim's sources with all mutants in them, into a jar that stands before the shim's own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from metastore.jvm_session import find_shim_package
from mutation.mutator import Mutant, broken, changes, describe, switched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from mutation.mutator import Change

SHIM = Path(__file__).resolve().parents[2] / "jvm-shim"
SOURCES = SHIM / "src/main/scala/org/metastore/spark"
MUTATED = (
    "pruning/*.scala",
    "scan/Join*.scala",
    "scan/Aggregate*.scala",
    "scan/DistributionSnapshot.scala",
    "scan/PrunedScan.scala",
    "scan/RowFilters.scala",
    "scan/RowLevelPruning.scala",
    "scan/ScanPlanner.scala",
    "scan/ScannedFiles.scala",
)
ROUNDS = 12
OPTIONS = ("-encoding", "UTF-8", "-nowarn", "-Xmaxerrs", "100000")
SWITCH = """package org.metastore.spark.pruning

/** Which mutant is on, and which are reached; a loop that a mutant made endless ends by an error that none catches. */
object Mutant {{
  private final class Endless extends scala.util.control.ControlThrowable

  private val reached = new Array[Boolean]({count})
  @volatile private var on = -1
  private var left = Long.MaxValue

  def is(number: Int): Boolean = {{
    reached(number) = true
    left -= 1
    if (left < 0) throw new Endless
    number == on
  }}

  /** Turns one on, no other, for so many questions; -1: none. */
  def turnOn(number: Int, questions: Long): Unit = {{
    java.util.Arrays.fill(reached, false)
    left = questions
    on = number
  }}

  /** How many questions are left. */
  def questionsLeft: Long = left

  /** For each mutant `1` if its place was reached since the last call of `turnOn`. */
  def reachedBits: String = reached.map(if (_) '1' else '0').mkString
}}
"""


class Mutated(NamedTuple):
    """The classes, and the mutants by their numbers; those that do not compile are left out."""

    classes: Path
    mutants: dict[int, Mutant]
    refused: int


def sources(pattern: str = "") -> list[Path]:
    """Returns the sources that have mutants, of names that match a regular expression."""
    files = [file for glob in MUTATED for file in sorted(SOURCES.glob(glob))]
    return [file for file in files if re.search(pattern, file.name)]


def build(files: Sequence[Path]) -> Mutated:
    """Compiles the mutants of some sources; what does not compile is dropped, and the rest compiled again.

    What was compiled of the same sources is used again.

    Raises:
        RuntimeError: they do not compile for another reason.
    """
    code = {file: file.read_bytes() for file in files}
    listed = [(file, change) for file in files for change in changes(code[file])]
    folder = SHIM / "target/mutants" / _digest(_switched(code, dict(enumerate(listed))))
    numbers_file = folder / "numbers.json"
    numbers = json.loads(numbers_file.read_text()) if numbers_file.exists() else _compiling(code, listed, folder)
    numbers_file.write_text(json.dumps(numbers))
    mutants = {i: describe(listed[i][0].name, code[listed[i][0]], listed[i][1]) for i in numbers}
    return Mutated(folder / "classes", mutants, len(listed) - len(mutants))


def compile_changed(changes: dict[str, tuple[str, str]], folder: Path) -> Path:
    """Compiles sources in each of which one text is replaced by another, and returns the folder of their classes.

    Args:
        changes: by the source's name below SOURCES, the text and what replaces it.
    """
    texts = {}
    for name, (before, after) in changes.items():
        source = (SOURCES / name).read_text("utf-8")
        assert source.count(before) == 1, f"{name} has not once: {before}"
        texts[Path(name).name] = source.replace(before, after)
    _compile(texts, 0, folder)
    return folder / "classes"


def switch(spark: SparkSession) -> Any:
    """Returns what turns mutants on."""
    return find_shim_package(spark).pruning.Mutant


def _digest(texts: dict[str, str]) -> str:
    """Tells what was compiled: the mutants, and the sources around them."""
    compiled_with = [*sorted(SOURCES.rglob("*.scala")), SHIM / "hatch_build.py"]
    digest = hashlib.sha256("".join([SWITCH, *OPTIONS, *texts.values()]).encode())
    for file in compiled_with:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _switched(code: dict[Path, bytes], numbered: dict[int, tuple[Path, Change]]) -> dict[str, str]:
    return {
        file.name: switched(code[file], {i: change for i, (of, change) in numbered.items() if of == file})
        for file in code
    }


def _compiling(code: dict[Path, bytes], listed: Sequence[tuple[Path, Change]], folder: Path) -> list[int]:
    numbered = dict(enumerate(listed))
    for number in range(ROUNDS):
        wrong = _compile(_switched(code, numbered), len(listed), folder)
        if not wrong:
            return list(numbered)
        print(f"compiled {number + 1} times, {len(wrong)} mutants are no Scala", file=sys.stderr)
        numbered = {i: mutant for i, mutant in numbered.items() if i not in wrong}
    raise RuntimeError("mutants do not compile")


def _compile(texts: dict[str, str], count: int, folder: Path) -> set[int]:
    """Compiles sources against the shim that was built, and returns the mutants with errors."""
    sys.path.insert(0, str(SHIM))
    import hatch_build  # noqa: PLC0415 - it is no package of ours

    host = hatch_build.installed(hatch_build.pyspark_folder())
    build = hatch_build.find_build(host)
    name = rf"\g<0>.{build.package}"
    texts = {**texts, "Mutant.scala": SWITCH.format(count=count)}
    texts = {file: hatch_build.PACKAGES.sub(name, text) for file, text in texts.items()}
    (folder / "classes").mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, "utf-8")
    shim = hatch_build.compile_classes(build.name, hatch_build.class_path_of(build, host))
    path = os.pathsep.join(map(str, [shim, *host.jars]))
    written = [str(folder / file) for file in texts]
    arguments = folder / "scalac.args"
    arguments.write_text("\n".join([*OPTIONS, "-d", str(folder / "classes"), "-cp", path, *written]))
    compiler = os.pathsep.join(map(str, host.compiler))
    command = [hatch_build.java(), "-Xss64m", "-cp", compiler, "scala.tools.nsc.Main", f"@{arguments}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    said = done.stdout + done.stderr
    positions = {file: _code_positions(said, str(folder / file), text) for file, text in texts.items()}
    wrong = {
        i for file, file_positions in positions.items() if file_positions for i in broken(texts[file], file_positions)
    }
    if done.returncode and not wrong:
        raise RuntimeError(said)
    return wrong


def _code_positions(said: str, path: str, text: str) -> list[int]:
    """Returns where a compiler found errors in a file: it writes the line, and below it a mark under the column."""
    starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
    positions: list[int] = []
    line = None
    for written in said.splitlines():
        if head := re.match(rf"{re.escape(path)}:(\d+): error", written):
            line = int(head[1])
        elif line is not None and re.fullmatch(r" *\^", written):
            positions.append(starts[line - 1] + written.index("^"))
            line = None
    return positions
