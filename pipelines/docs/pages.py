"""The site's sources: pages of this folder, the READMEs, the notebooks and lists of settings, as Sphinx reads them."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import Field
from pathlib import Path

import jupytext

from daskw2v import Params, Resources
from daskw2v.config.choice import group_by_heading
from daskw2v.config.settings import get_default

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
NOTEBOOKS = ROOT / "pipelines" / "notebooks"
_LINK = re.compile(r"\]\(([^)#\s]+)")
_TO_NOTEBOOK = re.compile(r"(\]\([^)\s]*notebooks/\w+)\.py\)")
_TO_ANOTHER = re.compile(r"(\]\(\w+)\.py\)")  # from a notebook
_NAMED = re.compile(r"`([\w/]+)/README\.md`|`([\w/]+)\.md`")  # in README.md, which PyPI shows, too: it has no links
_KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}


def readmes() -> Iterator[Path]:
    """Yield the Markdown pages of the repository that are pages of the site, relative to it."""
    yield from map(Path, ("README.md", "CHANGELOG.md", "daskw2v/ARCHITECTURE.md"))
    yield from (Path("benchmarks") / name for name in ("RESULTS.md", "PAPERS.md"))
    for folder in ("daskw2v", "pipelines", "benchmarks"):
        yield from (path.relative_to(ROOT) for path in sorted((ROOT / folder).rglob("README.md")))


def notebooks() -> list[Path]:
    """List the notebooks."""
    return sorted(NOTEBOOKS.glob("*.py"))


def write_pages(folder: Path) -> None:
    """Write all sources to a folder, each page at its path in the repository, so that relative links stay valid."""
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__", "build.py", "links.py", "pages.py"))
    for page in readmes():
        _copy_readme(page, folder)
    for path in notebooks():
        target = folder / path.relative_to(ROOT).with_suffix(".ipynb")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_notebook(path, target)
    for settings in (Params, Resources):
        (folder / "reference" / f"{settings.__name__}.txt").write_text(_settings(settings), encoding="utf-8")


def _write_notebook(path: Path, target: Path) -> None:
    """Write a notebook in Jupyter's format; its links to notebooks and pages become links of the site."""
    text = _TO_ANOTHER.sub(r"\1.ipynb)", path.read_text(encoding="utf-8")).replace("](../docs/", "](../../")
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata = {**notebook.metadata, **_KERNEL}
    jupytext.write(notebook, target)


def _copy_readme(page: Path, folder: Path) -> None:
    """Copy a page and the files that it links to; its links to notebooks become links to their pages."""
    text = _TO_NOTEBOOK.sub(r"\1.ipynb)", (ROOT / page).read_text(encoding="utf-8"))
    if page == Path("README.md"):
        text = _NAMED.sub(lambda match: f"[{match[1] or match[2]}]({match[0][1:-1]})", text)
    target = folder / page
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    for link in _LINK.findall(text):
        linked = (ROOT / page).parent / link
        if linked.is_file() and linked.suffix != ".md":
            copy = target.parent / link
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(linked, copy)


def _settings(settings: type) -> str:
    """Return all fields under their headings, as Markdown."""
    return "\n".join(
        f"### {settings.__name__}: {heading}\n\n" + "\n".join(_setting(known.field) for known in fields)
        for heading, fields in group_by_heading(settings).items()
        if fields
    )


def _setting(field: "Field[object]") -> str:
    """Return a term and its definition; tables are too wide for phones."""
    default = get_default(field)
    shown = "" if default is None else f", by default `{default!r}`"
    return f"`{field.name}`{shown}\n: {_escaped(field.metadata['help'])}\n"


def _escaped(text: str) -> str:
    return re.sub(r"([*_|<\[{$`])", r"\\\1", text)
