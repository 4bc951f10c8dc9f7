"""The documentation's site: it has every public name once, its tables are true, and its links lead somewhere."""

import importlib
import importlib.util
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import daskw2v
from daskw2v import Params, Resources
from pipelines.docs.links import dead_links, read_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "pipelines" / "docs"
PUBLIC = [*daskw2v.__all__, *(f"stages.{name}" for name in daskw2v.stages.__all__)]
DOCUMENTED = re.compile(
    r"^\.\. (?:auto(?:class|function|exception)|py:data):: daskw2v\.((?:stages\.)?\w+)(?=$|\()", re.MULTILINE
)
needs_sphinx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "furo", "myst_nb", "jupytext", "numpydoc")),
    reason="Sphinx comes with daskw2v[docs]",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, with notebooks that are not run."""
    build = pytest.importorskip("pipelines.docs.build")
    folder = tmp_path_factory.mktemp("docs")
    assert build.build(folder, notebooks=False) == 0
    return folder / "html"


def test_reference__has_every_public_name_once():
    """A name that is new goes to the page of `pipelines/docs/reference` where a user would look for it."""
    found = [name for page in (DOCS / "reference").glob("*.md") for name in DOCUMENTED.findall(page.read_text())]
    assert sorted(found) == sorted(PUBLIC)


def rows_of(page):
    """Yield the names in the first two cells of each row of a page's tables."""
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        if line.startswith("| `"):
            yield [re.findall(r"`([^`]+)`", cell) for cell in cells[:2]]


def check_name(name, owners):
    """Fail unless `owner.attribute`, `owner["word"]`, `Callable(argument=)` or a name is there."""
    owner, _, attribute = name.partition(".")
    if owner in owners and attribute:
        assert hasattr(owners[owner], attribute), name
    elif "[" in name:
        assert eval(name, {}, dict(owners)) is not None
    else:
        called, _, argument = name.partition("(")
        assert called in owners, name
        if argument:
            assert argument.removesuffix("=)") in inspect.signature(owners[called]).parameters, name


def test_from_gensim__names_what_is_there():
    models = pytest.importorskip("gensim.models")
    model = models.Word2Vec([["word", "other"]] * 3, min_count=1, vector_size=4)
    vectors = daskw2v.from_gensim(model.wv)
    theirs = {
        "Word2Vec": models.Word2Vec,
        "KeyedVectors": models.KeyedVectors,
        "Phrases": models.Phrases,
        "FastText": models.FastText,
        **vars(models.fasttext),
        "model": model,
        "wv": model.wv,
    }
    ours = {**{name: getattr(daskw2v, name) for name in daskw2v.__all__}, "vectors": vectors, "stages": daskw2v.stages}
    rows = list(rows_of(DOCS / "from_gensim.md"))
    assert len(rows) > 40
    for left, right in rows:
        assert left
        assert right
        for name in left:
            check_name(name, theirs)
        for name in right:
            check_name(name, ours)


def test_dead_links__finds_pages_files_and_anchors_that_are_missing(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "index.html").write_text(
        '<link href="style.css"><a id="top" href="#top"><a href="sub/page.html#here"><a href="sub/#index">'
        '<a href="https://nowhere"><a href="mailto:nobody"><a href="sub/page.html#away"><a href="no.html"><img src="x">'
    )
    (tmp_path / "sub" / "page.html").write_text('<p id="here"><a href="../index.html#top"><a href="../sub%20x">')
    (tmp_path / "sub" / "index.html").write_text('<p id="index"><a href="#gone">')
    assert dead_links(tmp_path) == [
        "index.html: sub/page.html#away",
        "index.html: no.html",
        "index.html: x",
        "sub/index.html: #gone",
        "sub/page.html: ../sub%20x",
    ]


@needs_sphinx
@pytest.mark.slow
def test_site__is_built_without_a_warning_or_a_dead_link(site):
    assert (site / "index.html").exists()
    assert dead_links(site) == []


@needs_sphinx
@pytest.mark.slow
def test_site__has_all_pages(site):
    pages = importlib.import_module("pipelines.docs.pages")
    wanted = [path.with_suffix(".html") for path in pages.readmes()]
    wanted += [path.relative_to(ROOT).with_suffix(".html") for path in pages.notebooks()]
    assert len(wanted) > 25
    assert [path for path in wanted if not (site / path).exists()] == []


@needs_sphinx
@pytest.mark.slow
def test_site__documents_names_and_settings(site):
    anchors = set().union(*(read_page(path).anchors for path in (site / "reference").glob("*.html")))
    assert {f"daskw2v.{name}" for name in PUBLIC} <= anchors
    assert {"daskw2v.Vectors.most_similar", "daskw2v.errors.ParameterError"} <= anchors
    settings = (site / "reference" / "settings.html").read_text(encoding="utf-8")
    missing = [f.name for cls in (Params, Resources) for f in fields(cls) if f">{f.name}<" not in settings]
    assert missing == []


@needs_sphinx
@pytest.mark.slow
def test_site__fetches_nothing_from_elsewhere(site):
    """Pages are read without a network: scripts, styles and images are beside them."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//[^>]*", text) == []
        assert re.findall(r"<link[^>]+rel=\"stylesheet\"[^>]+href=\"(?:https?:)?//[^>]*", text) == []


PAGES = sorted(
    page for folder in ("", "benchmarks/**/", "daskw2v/**/", "pipelines/**/") for page in ROOT.glob(f"{folder}*.md")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_powers__are_not_taken_for_bold_text(page):
    """Markdown reads what stands between 2**20 and the next two stars as bold."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\w\*\*\w+", text) == []
