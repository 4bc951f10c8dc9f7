import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import fsspec
import numpy as np
import pytest
from examples import HARMFUL, manifest, model

from daskw2v import compare, report
from daskw2v.errors import MissingExtraError, ParameterError, UnknownWordError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.tables import StoredRows
from daskw2v.reports import text
from daskw2v.reports.wordmap import make_word_map
from daskw2v.store.arrays import open_array, write_array
from daskw2v.store.storage import Store

FETCHING = {"src", "href", "srcset", "data", "poster", "action", "formaction", "background", "cite", "manifest"}

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Parsed(HTMLParser):
    """What a browser would make of a page: its elements, texts and scripts."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.ids, self.sections, self.links, self.texts, self.scripts = [], [], [], [], [], []
        self.open = []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.sections += [attributes["id"]] if tag == "section" else []
        self.links += [value for name, value in attributes.items() if name in FETCHING]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] in ("script", "style") else self.texts).append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", "".join(self.texts))


def written(tmp_path, *args, **kwargs):
    url = report(args[0], tmp_path / "page.html", *args[1:], **kwargs)
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert url == str(tmp_path / "page.html")
    return content, Parsed(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, trained, earlier, evaluation):
    """The page that has everything."""
    return written(
        tmp_path_factory.mktemp("whole"),
        trained,
        evaluation=evaluation,
        other=earlier,
        other_evaluation=evaluation,
        words=["king", *HARMFUL],
    )


def test_page__has_every_section_of_a_model_that_tells_all(whole, trained):
    _, parsed = whole
    assert parsed.sections == ["settings", "training", "scores", "words", "neighbours", "comparison"]
    for said in (
        "180,000",
        "1 min 01 s",
        "98,765",
        "1.23 GB",
        "45.6 MB",
        "0.688",
        "0.625 to 0.750",
        "96 %",
        "capitals <b>",
        "semantic",
        "<b>$$set$$",
        "daskw2v 9.8.7",
        "2026-11-21 17:07:29 UTC",
        "v0001-abc<i>",
        f"{len(trained.metadata['params']) - 2} others",
    ):
        assert said in parsed.text, said


def test_page__has_balanced_elements_and_unique_ids(whole):
    _, parsed = whole
    assert parsed.open == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)


def test_page__leaves_out_what_is_not_known(tmp_path, plain):
    _, parsed = written(tmp_path, plain)
    assert parsed.sections == ["words", "neighbours"]
    assert "no metadata about their training" in parsed.text


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("missing", "section"),
    [
        ("stages", "Time by stage"),
        ("workers", "Workers"),
        ("history", "Learning rate"),
        ("evaluations", "while training"),
    ],
)
def test_page__leaves_out_what_an_earlier_version_does_not_tell(tmp_path, plain, whole, missing, section):
    assert section in whole[1].text
    metadata = manifest()
    del metadata["metrics"][missing]
    _, parsed = written(tmp_path, Vectors(plain.vocabulary, plain.vectors, metadata), map_words=5)
    assert section not in parsed.text


def test_page__keeps_words_from_becoming_anything_else(whole):
    content, parsed = whole
    for word in HARMFUL:
        assert text.shown(word) in "".join(parsed.texts)
    assert not any(tag in ("img", "b") and ("src" in a or "onerror" in a) for tag, a in parsed.tags)
    assert "alert(1)" not in "".join(s for s in parsed.scripts if not s.lstrip().startswith("{"))
    assert not any(c in content for c in "\x1b\x00\x07\u202e\u2028")
    assert "49" not in parsed.text.split("{{ 7 * 7 }}")[1][:5]
    scripts = [tag for tag, _ in parsed.tags if tag == "script"]
    assert content.lower().count("</script") == len(scripts)
    assert "a" * 200 not in content
    for element in ("script", "link", "img", "iframe", "object", "embed", "base"):
        assert not any(tag == element and FETCHING & a.keys() for tag, a in parsed.tags)


def test_page__needs_nothing_from_elsewhere(whole):
    _, parsed = whole
    assert all(link.startswith("#") for link in parsed.links)
    policy = next(a["content"] for _, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    styles = "".join(re.findall(r"<style>.*?</style>", whole[0], re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles


def test_page__is_small(whole):
    assert len(whole[0].encode()) < 3_000_000


def test_page__shows_the_given_words(tmp_path, trained):
    _, parsed = written(tmp_path, trained, words=["queen"], map_words=10)
    nearest = [word for word, _ in trained.most_similar("queen", topn=10)]
    assert all(text.shown(word) in "".join(parsed.texts) for word in nearest)
    assert "10 most frequent words" in parsed.text


def test_page__draws_the_loss_on_held_out_text_where_it_was_measured(tmp_path, trained, whole):
    metrics = trained.metadata["metrics"]
    history = [*metrics["history"][:-1], {**metrics["history"][-1], "held_out_loss": 2.25}]
    told = {**trained.metadata, "metrics": {**metrics, "history": history}}
    title = "Loss on held-out text"
    assert title in written(tmp_path, replace(trained, metadata=told))[1].text
    assert title not in whole[1].text


def test_page__shows_the_comparison(tmp_path, trained, earlier):
    _, parsed = written(tmp_path, trained, other=earlier, map_words=10)
    comparison = compare(earlier, trained)
    assert text.percent(comparison.stability.overlap, 1) in "".join(parsed.texts)
    assert "window 5 9 +4" in parsed.text
    assert f"words {len(earlier)} {len(trained)} +50" in parsed.text


def test_page__data_of_its_plots_is_json(whole):
    content, _ = whole
    found = dict(re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', content, re.DOTALL))
    assert set(found) == {"data-map", "data-loss", "data-alpha", "data-speed", "data-scores", "on-map"}
    near = json.loads(found["on-map"])
    assert near["first"] == 0
    assert len(near["ids"]) == len(near["cosines"])
    assert len(near["clusters"]) == len(near["paint"]) == 3
    assert all(colour in content for colour in near["paint"])


def test_page__says_how_the_map_was_laid_out(tmp_path, plain):
    _, parsed = written(tmp_path, plain)
    kept = [text.percent(make_word_map(plain).kept(among)) for among in (10, 50)]
    said = "".join(parsed.texts)
    assert "joins each word to its 15 nearest" in said
    assert f"{kept[0]} are among its ten nearest on the map, {kept[1]} among its fifty" in said


def test_page__lists_clusters_and_their_sizes(whole, trained):
    _, parsed = whole
    clusters = make_word_map(trained).clusters
    assert f"The {len(clusters)} clusters as a list" in parsed.text
    for cluster in clusters:
        label = ", ".join(text.shown(word, 24) for word in cluster.label)
        assert parsed.texts[parsed.texts.index(label) + 2] == str(len(cluster.members))


def test_page__draws_without_complaints(tmp_path, trained, caplog):
    metadata = manifest()
    for entry in metadata["metrics"]["history"]:
        entry.update(pairs=0, loss=0.0, alpha=0.0)
    metadata["metrics"]["evaluations"] = [{"progress": 0, "scores": {"none": None}}]
    written(tmp_path, Vectors(trained.vocabulary, trained.vectors, metadata))
    assert caplog.records == []


def test_page__reads_a_model_in_a_store_by_the_rows_it_needs(tmp_path, trained):
    store = Store(str(tmp_path / "table"))
    write_array(store.create_group(), "input", trained.vectors, 16)
    stored = StoredRows(open_array(store.open_group(), "input"))
    vectors = Vectors(trained.vocabulary, stored, trained.metadata, trained.url)
    content, _ = written(tmp_path, vectors, words=["king"])
    expected, _ = written(tmp_path, trained, words=["king"])
    assert re.sub(r"p\d+|[0-9a-f-]{36}", "", content) == re.sub(r"p\d+|[0-9a-f-]{36}", "", expected)


def test_report__writes_to_any_url_and_replaces_what_is_there(tmp_path, plain):
    url = report(plain, "memory://reports/a.html", map_words=5)
    assert url == "memory://reports/a.html"
    with fsspec.open(url) as f:
        assert f.read().lstrip().startswith(b"<!doctype html>")
    target = tmp_path / "folder" / "a.html"
    target.parent.mkdir()
    target.write_text("old")
    assert report(plain, target, map_words=5) == str(target)
    assert [path.name for path in target.parent.iterdir()] == ["a.html"]
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_report__names_what_it_cannot_do(tmp_path, plain, trained, evaluation):
    target = tmp_path / "page.html"
    with pytest.raises(ParameterError, match=r"'reports/' names no file\. Give"):
        report(plain, "reports/")
    with pytest.raises(ParameterError, match="map_method='tsne'"):
        report(plain, target, map_method="tsne")
    with pytest.raises(ParameterError, match="other_evaluation is given without other"):
        report(plain, target, other_evaluation=evaluation)
    with pytest.raises(UnknownWordError, match="'no'"):
        report(plain, target, words=["no"])
    with pytest.raises(UnknownWordError, match="'king'"):
        report(trained, target, other=plain, words=["king"])
    with pytest.raises((MissingExtraError, ParameterError), match="umap"):
        report(plain, target, map_method="umap", map_words=12)
    assert not target.exists()


def test_report__takes_one_word_and_one_dimension(tmp_path):
    vectors = model(["only"], 1)
    vectors.vectors[:] = np.float32(2)
    _, parsed = written(tmp_path, vectors)
    assert "1 most frequent" in parsed.text
