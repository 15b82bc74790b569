"""The mutator on small sources, and what is kept of it: every mutant that is listed as equivalent still exists."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mutation import build, mutate, queries, row_commands, suites
from mutation.mutator import Mutant, broken, changes, describe, switched


def described_changes(body: str) -> list[str]:
    """The changes of an expression or definition, as people read them."""
    code = f"object A {{ {body} }}".encode()
    return [describe("A.scala", code, change).key[2] for change in changes(code)]


@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "def f = a < b": ["a < b -> a <= b", "a < b -> a >= b"],
        "def f = a == 3": ["a == 3 -> a != 3", "3 -> 4", "3 -> 2"],
        "def f = a <= 0": ["a <= 0 -> a < 0", "a <= 0 -> a > 0"],
        "def f = a && !b": ["a && !b -> a", "a && !b -> !b", "!b -> b"],
        "def f = g(isNull = true)": ["true -> false"],
        "def f = a && b == classOf[C]": [
            "a && b == classOf[C] -> a",
            "a && b == classOf[C] -> b == classOf[C]",
            "b == classOf[C] -> b != classOf[C]",
        ],
        "def f = a || !b.c[D](e).f": [
            "a || !b.c[D](e).f -> a",
            "a || !b.c[D](e).f -> !b.c[D](e).f",
            "!b.c[D](e).f -> b.c[D](e).f",
        ],
        "def f = xs.filter(_ > a)": [
            "xs.filter(_ > a) -> xs.filterNot(_ > a)",
            "_ > a -> _ >= a",
            "_ > a -> _ <= a",
        ],
        "def f = xs.exists(g(_).los == b)": [
            "xs.exists(g(_).los == b) -> xs.forall(g(_).los == b)",
            "g(_).los == b -> g(_).los != b",
            "g(_).los == b -> g(_).his == b",
        ],
        "def f = if (g) a else b": ["g -> !(g)"],
        "def f = x match { case 1 | 2 => a; case B(_, true) if c => d; case _ => e }": [
            "case -> no case",
            "case -> no case",
            "c -> !(c)",
        ],
        'def f = s"${a + 1}"': [],
        "def nulls(lo: Int = 3) = lo": ["3 -> 4", "3 -> 2"],
        "private val Kept = 5; def f = a match { case Kept => b; case _ => c }": ["case -> no case"],
    }.items(),
)
def test_changes(body, expected):
    assert sorted(described_changes(body)) == sorted(expected)


def test_all_changes_stand_in_one_source_and_without_any_it_is_what_it_was():
    code = b"object A {\n  private val Most = 3\n  def f = a < b && xs.exists(_.lo(i) > c)\n}\n"
    numbered = dict(enumerate(changes(code)))
    text = switched(code, numbered)
    assert "private def Most" in text
    for number in numbered:
        assert text.count(f"Mutant.is({number})") == 1
    assert "else (a < b))" in text
    assert "(a <= b)" in text
    assert "(xs.exists(_.hi(i) > c))" not in text  # the argument is chosen, for its underscore cannot be parted from it
    assert "(_.hi(i) > c)" in text


@pytest.mark.parametrize("constant", ["Most = 3", "Most: Map[A, B => C] = Map(a -> 3)", "Most =\n    3"])
def test_a_constant_is_computed_each_time(constant):
    """Computed once, as Scala does it, it would be the same with each mutant."""
    code = f"object A {{\n  private val {constant}\n}}\n".encode()
    assert "\n  private def Most" in switched(code, dict(enumerate(changes(code))))


def test_suites_are_for_sources_with_mutants():
    """Each mutated source of `scan` has suites, also after it was divided."""
    chosen = (
        *queries.OF_JOINS,
        *queries.OF_EXPRESSIONS,
        *queries.OF_SCANS,
        *queries.OF_ZEROS,
        *queries.OF_DELETES,
        *row_commands.SCALA_SOURCES,
        *suites.GROUPED,
    )
    sources = build.sources()
    assert set(chosen) <= {file.name for file in sources}
    assert {file.name for file in sources if file.parent.name == "scan"} <= set(chosen)


def test_what_does_not_compile_is_found_by_its_place():
    code = b"object A { def f = a < b }"
    text = switched(code, dict(enumerate(changes(code))))
    assert broken(text, [text.index("a <= b")]) == {0}
    assert broken(text, [text.index("a >= b")]) == {1}
    assert broken(text, [text.index("a < b")]) == {0, 1}
    with pytest.raises(ValueError, match="object B"):
        broken(text + "\nobject B", [len(text) + 3])
    assert broken(text + "\nobject B", [text.index("a <= b"), len(text) + 3]) == {0}


def test_mutants_that_are_listed_as_equivalent_exist():
    code = {file: file.read_bytes() for file in build.sources()}
    mutants = {describe(file.name, text, change).key for file, text in code.items() for change in changes(text)}
    assert len(mutants) > 1000
    assert set(mutate.equivalents()) - mutants == set()


def test_only_those_that_survived_are_asked_again(tmp_path):
    killed, survived, new = (Mutant("A.scala", 1, "a < b", "a < b", after) for after in ("a <= b", "a >= b", "a"))
    outcomes = [(killed, "wrong"), (survived, "survived"), (killed, "weaker")]
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps([{**vars(mutant), "outcome": outcome} for mutant, outcome in outcomes]))
    mutants = dict(enumerate((killed, survived, new)))
    assert mutate.survivors(mutants, earlier) == {1: survived, 2: new}


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_kills_mutants(tmp_path):
    json_file = tmp_path / "told.json"
    command = [sys.executable, str(Path(mutate.__file__)), "--files", "WantedRows", "--predicates", "0"]
    done = subprocess.run([*command, "--json", str(json_file)], capture_output=True, text=True, check=False)
    assert "0 wrong without a mutant" in done.stderr, done.stderr[-3000:]
    outcomes = [mutant["outcome"] for mutant in json.loads(json_file.read_text())]
    assert outcomes
    assert {"wrong", "weaker"} & set(outcomes)
