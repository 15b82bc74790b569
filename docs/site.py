"""Hook of MkDocs (mkdocs.yml): gives the site the tree of the repository, the tour as a page, and the Python reference.

Links in pages then lead to the same place on the site and in a clone, and MkDocs checks every one of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from griffe import Extension
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

import metastore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from griffe import Object
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

LOG = get_plugin_logger("site")
ROOT = Path(__file__).resolve().parents[1]
BESIDE = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"),
    *("benchmarks/README.md", "conf/*", "examples/*.ipynb"),
)
"""What pages outside of docs/ the site has, and the files that pages link to."""

FETCHED = re.compile(r'<(?:link|script|img|iframe|source)\b[^>]*\b(?:href|src)="((?:https?:)?//[^"]+)"')
CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]+")
WITHIN_NAME = re.compile(r"(?<=[\w)][._/])(?=[A-Za-z])")

TOUR = "examples/tour.ipynb"
REFERENCE = "docs/python.md"
REFERENCE_HEAD = """# Python

Everything that `import metastore` has. The functions take a Spark session, classic or Connect;
[`metastore.open`][metastore.open] answers without Spark.
"""
GROUPS = {
    "Compute": ("analyze", "statistic", "configure"),
    "Look": ("open", "summary", "frequencies", "histogram", "quantiles", "columns", "diff", "report"),
    "Find": ("files", "locate", "layout", "snapshots", "tables", "version"),
    "Ask about queries": ("explain", "whatif", "estimates", "filtered_summary", "history"),
    "Keep stores in order": ("verify", "gc", "compact"),
    "Hand to others": ("export",),
    "What is answered": ("Answer", "AnalyzeReport", "Statistics", "Statistic"),
    "Errors": ("errors",),
    "Settings": ("settings",),
}
"""Every public name, in the order in which they are met."""


class ExampleSections(Extension):
    """Shows the section `Example:` of a docstring as code, as griffe does with `Examples:` alone."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Renames the section."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)^( *)Example:$", r"\1Examples:", obj.docstring.value)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Puts the pages where the repository has them."""
    ours = [file for file in files if file.src_dir == config.docs_dir]
    others = [file for file in files if file.src_dir != config.docs_dir]
    moved = [_kept(f"docs/{file.src_uri}", config) for file in ours if not file.inclusion.is_excluded()]
    beside = [_kept(path.relative_to(ROOT).as_posix(), config) for name in BESIDE for path in sorted(ROOT.glob(name))]
    made = [
        File.generated(config, TOUR.replace(".ipynb", ".md"), content=render_notebook(ROOT / TOUR)),
        File.generated(config, REFERENCE, content=render_reference()),
    ]
    return Files([*others, *moved, *beside, *made])


def on_page_content(html: str, **_: Any) -> str:
    """Lets long names in cells of tables end a line behind a dot, a slash or an underscore, and nowhere else."""
    return CELL.sub(lambda cell: CODE.sub(lambda code: WITHIN_NAME.sub("<wbr>", code[0]), cell[0]), html)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Warns of a page that fetches something from elsewhere; in strict mode that ends the build."""
    for fetched in FETCHED.findall(output):
        LOG.warning("%s fetches %s", page.file.src_uri, fetched)
    return output


def render_notebook(notebook: Path) -> str:
    """A notebook as a page: its text, and its code in fences."""
    return "\n\n".join(_cells(json.loads(notebook.read_text("utf-8")), notebook.name))


def render_reference() -> str:
    """The reference of every public name, for mkdocstrings to fill."""
    grouped = {name for names in GROUPS.values() for name in names}
    for name in {*metastore.__all__} - grouped - {"MetastoreError"}:
        LOG.warning("metastore.%s is in none of GROUPS: name it there", name)
    parts = (f"## {title}\n\n" + "\n\n".join(map("::: metastore.{}".format, names)) for title, names in GROUPS.items())
    return "\n\n".join((REFERENCE_HEAD, *parts)) + "\n"


def _kept(name: str, config: MkDocsConfig) -> File:
    return File.generated(config, name, abs_src_path=str(ROOT / name))


def _cells(notebook: dict, name: str) -> Iterator[str]:
    for number, cell in enumerate(notebook["cells"]):
        text = "".join(cell["source"])
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        if not number:
            yield f"As a notebook: [{name}]({name})."
