"""Every example of the pages: each fenced block, each line of a shell's, and each command in the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"))
HISTORY = ROOT / "CHANGELOG.md"
"""Tells what was typed once."""

DECLARED: Mapping[str, Any] = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)(`+) ?(?!`)(.+?) ?(?<!`)\1(?!`)")
_LANGUAGES = {
    "sh": re.compile(r"(metastore|uv|pip|pipx|python|export|spark-submit) [^.]"),
    "python": re.compile(r"(metastore|spark)\.\w+(\.\w+)*\("),
    "sql": re.compile(r"(SELECT|ANALYZE|SET|ALTER|CREATE|EXPLAIN|INSERT|DROP|REFRESH|USE) ."),
}
_COMMENT = re.compile(r"(^|\s+)#.*")
_ELLIPSIS = re.compile(r"\.\.")
_ONLY_NAMES = re.compile(r"metastore\.(\w+)\([^'\"]+\)")


@dataclass(frozen=True)
class Example:
    """A command or code in a page, or a result that the page shows.

    Attributes:
        page: The page, from the root of the project.
        language: Of a block what its fence says; `sh`, `python` or `sql` of a command in the text.
        text: What stands there: a block, or one line of a block of `sh`.
        inline: Whether it stands in the text.
    """

    page: str
    language: str
    text: str
    inline: bool = False

    @property
    def is_mention(self) -> bool:
        """Whether it names a thing rather than being one: with an ellipsis, or with parameters for arguments."""
        names = _ONLY_NAMES.fullmatch(self.text) or re.fullmatch(r"metastore [\w-]+", self.text)
        return self.inline and bool(_ELLIPSIS.search(fill_in(self.text)) or names)

    @property
    def test(self) -> str | None:
        """The other test that runs it."""
        entries = (
            entry for entry in DECLARED["elsewhere"] if (entry["page"], entry["language"]) == (self.page, self.language)
        )
        return None if self.inline else next((entry["test"] for entry in entries), None)

    @property
    def reason(self) -> str | None:
        """Why no test runs it."""
        return next((entry["why"] for entry in DECLARED["not_run"] if re.fullmatch(entry["is"], self.text)), None)

    def __str__(self) -> str:
        return f"{self.page}: {self.text.splitlines()[0]}"


def fill_in(text: str, **more: str) -> str:
    """An example with real things where it has placeholders."""
    for placeholder, real in DECLARED["filled_in"].items():
        text = text.replace(placeholder, real.format(**more) if more else real)
    return text


def read_examples(language: str = "") -> list[Example]:
    """Read the examples of all pages, or of one language; equal ones of one page once."""
    examples = (example for page in sorted({*PAGES} - {HISTORY}) for example in _of_page(page))
    return list(dict.fromkeys(example for example in examples if language in ("", example.language)))


def examples_to_run(language: str) -> list[Example]:
    """Read the examples that no other test runs and that can run, each text once."""
    ours = [
        example for example in read_examples(language) if not (example.is_mention or example.test or example.reason)
    ]
    return list({example.text: example for example in ours}.values())


def _of_page(page: Path) -> Iterator[Example]:
    name, text = page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
    for language, block in _BLOCK.findall(text):
        parts = _commands(block) if language == "sh" else [block]
        yield from (Example(name, language, part) for part in parts)
    for _, code in _INLINE.findall(_BLOCK.sub("", text)):
        language = next((candidate for candidate, begins in _LANGUAGES.items() if begins.match(code)), None)
        if language:
            yield Example(name, language, code, inline=True)


def _commands(block: str) -> list[str]:
    lines = (_COMMENT.sub("", line).strip() for line in block.splitlines())
    return [line for line in lines if line]
