"""One self-contained HTML page about a model, readable without network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from daskw2v.errors import ParameterError
from daskw2v.evaluation import Evaluation, Score
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.files import open_for_writing
from daskw2v.reports import plots, text
from daskw2v.reports.compare import Comparison, choose_words, compare, find_nearest
from daskw2v.reports.training import (
    list_facts,
    list_settings,
    list_stage_times,
    list_text_facts,
    read_held_out_losses,
    read_score_curves,
    training_points,
)
from daskw2v.reports.wordmap import WordMap, check_map, make_word_map
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url

_EXAMPLES = 12  # words whose neighbours are shown
_TOPN = 10  # neighbours of each word
_MAP_TOPN = 8  # words that the map shows beside a selected one
_MAX_POINTS = 500  # of a curve
_MAX_ROWS = 40  # of the table of the curves
_INTERVALS = {  # meaning of low and high
    "similarity": "95 % confidence",
    "categorization": "lowest and highest of several clusterings",
    "classification": "lowest and highest of several folds",
}


def report(
    vectors: Vectors,
    url: Location,
    *,
    evaluation: Evaluation | None = None,
    other: Vectors | None = None,
    other_evaluation: Evaluation | None = None,
    words: Sequence[str] | None = None,
    map_words: int = 2000,
    map_method: str = "graph",
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Write one HTML page about a model. The file is written atomically.

    Sections without metadata are left out, so models of earlier releases and vectors imported from word2vec files give
    a shorter page. A model in a store is read block by block.

    Parameters
    ----------
    vectors
        The model.
    url
        File to write, any fsspec URL or local path. An existing file is replaced.
    evaluation
        Result of `evaluate` for the model.
    other
        Model to compare with, such as the previous version.
    other_evaluation
        Result of `evaluate` for `other`.
    words
        Words whose neighbours are shown. The default is up to twelve words, as `choose_words` chooses them; in the
        comparison with `other`, the default of `compare`.
    map_words
        Number of words on the map, the most frequent ones.
    map_method
        `graph` (nearest words, laid out by the forces of t-SNE) or `umap`, as in `make_word_map`.
    storage_options
        Options for fsspec.

    Returns
    -------
    url
        URL, or absolute path, of the page.

    Raises
    ------
    ParameterError
        If the URL names no file, the map cannot be made, or `other_evaluation` is passed without `other`.
    UnknownWordError
        If a model does not know one of `words`.
    MissingExtraError
        If `map_method` is `umap` and UMAP is not installed.
    StoreError
        If no space is left.
    OSError
        If writing fails otherwise (no permission).

    Examples
    --------
    >>> vectors = daskw2v.Vectors.open("work")
    >>> daskw2v.report(vectors, "memory://reports/model.html", map_words=100)
    'memory://reports/model.html'
    """
    target = as_url(url, "url")
    if target.endswith("/"):
        raise ParameterError(f"url={target!r} names no file.", "Give the URL of a file, such as reports/model.html.")
    check_map(map_words, map_method)
    if other is None and other_evaluation is not None:
        raise ParameterError("other_evaluation is given without other.", "Give the model that it belongs to.")
    both = other_evaluation, evaluation
    comparison = None if other is None else compare(other, vectors, words, _TOPN, both)
    chosen = choose_words(vectors, _EXAMPLES) if words is None else words
    page = _render(vectors, chosen, make_word_map(vectors, map_words, map_method), evaluation, comparison)
    with open_for_writing(target, storage_options) as f:
        f.write(page.encode())
    return Store(target).url


def _load_template() -> Template:
    """Return the template of the page, which escapes all values, with the functions of `reports.text` as filters."""
    loader = PackageLoader("daskw2v.reports")
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    templates = Environment(loader=loader, undefined=StrictUndefined, **options)
    # Bokeh defines a model where it first occurs and refers to it later, so keys must keep their order.
    templates.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    filters = (text.shown, text.plain, text.number, text.signed, text.fixed, text.percent, text.size, text.duration)
    templates.filters.update({write.__name__: write for write in filters})
    return templates.get_template("page.html")


def _model_name(url: str | None) -> str:
    """Return the name of a model on the page: the last part of its URL."""
    return "vectors without a URL" if url is None else Store(url).name


def _map_data(drawn: WordMap, words: Sequence[str]) -> dict[str, Any]:
    """Return the data for the script of a map: neighbours, clusters, and the index of the selected word.

    The selected word is the first of `words` that is on the map; None if there is none. Cosines are in thousandths.
    """
    return {
        "ids": drawn.neighbours[:, :_MAP_TOPN].tolist(),
        "cosines": (drawn.cosines[:, :_MAP_TOPN] * 1000).round().astype("int").tolist(),
        "first": next((drawn.words.index(word) for word in words if word in drawn.words), None),
        "clusters": [cluster.word for cluster in drawn.clusters],
        "paint": plots.choose_cluster_colours(drawn),
    }


def _render(
    vectors: Vectors, words: Sequence[str], drawn: WordMap, evaluation: Evaluation | None, comparison: Comparison | None
) -> str:
    """Return the HTML of the page.

    Parameters
    ----------
    vectors, evaluation
        The model, and its evaluation if there is one.
    words
        Words whose neighbours are shown, outside of the comparison.
    drawn
        The map.
    comparison
        Comparison with a second model, if there is one.
    """
    metadata, metrics = vectors.metadata, vectors.metadata.get("metrics", {})
    points = training_points(metrics, _MAX_POINTS)
    progress, curves = read_score_curves(metrics)
    held_out_progress, losses = read_held_out_losses(metrics)
    drawings = {"map": plots.draw_map(drawn)}
    if points:
        drawings |= plots.draw_training_curves(points)
    if held_out_progress:
        drawings["held_out"] = plots.draw_over_tokens(held_out_progress, {"loss": losses})
    if curves:
        drawings["scores"] = plots.draw_over_tokens(progress, curves)
    return _load_template().render(
        name=_model_name(vectors.url),
        url=vectors.url,
        version=metadata.get("daskw2v"),
        created=metadata.get("created"),
        facts=list(list_facts(vectors)),
        text=list(list_text_facts(metadata)),
        choices=list_settings(metadata.get("params", {})),
        steps=training_points(metrics, _MAX_ROWS),
        stages=list_stage_times(metrics),
        workers=metrics.get("workers", []),
        curves=curves,
        series_colours=plots.SERIES_COLOURS,
        scores=[] if evaluation is None else list(list_ratings(evaluation)),
        intervals=[] if evaluation is None else interval_notes(evaluation),
        map=drawn,
        kept={among: drawn.kept(among) for among in (10, 50)},
        cluster_labels=[", ".join(text.shown(word, 24) for word in cluster.label) for cluster in drawn.clusters],
        on_map=_map_data(drawn, words),
        neighbours=list(zip(words, find_nearest(vectors, words, _TOPN), strict=True)),
        comparison=comparison,
        other=_model_name(comparison.urls[0]) if comparison else None,
        drawings=drawings,
        library=plots.bokeh_scripts(),
    )


@dataclass(frozen=True)
class CategoryScore:
    """The score of a category, or of a group of categories, of an evaluation set.

    Parameters
    ----------
    name
        Name of the category or group.
    accuracy
        Share of correct answers, 0..1; None without questions.
    questions
        Number of questions; None if unknown.
    """

    name: str
    accuracy: float | None
    questions: int | None


@dataclass(frozen=True)
class Rated:
    """A score of an evaluation set, with the scores of the set's groups and categories, if it has any.

    Parameters
    ----------
    score
        The score.
    coverage
        Share of the set's items that were evaluated, or of texts' words that the model knows, 0..1; None for an empty
        set.
    groups, categories
        Scores of groups of categories, and of categories.
    """

    score: Score
    coverage: float | None
    groups: tuple[CategoryScore, ...] = ()
    categories: tuple[CategoryScore, ...] = ()


def list_ratings(evaluation: Evaluation) -> Iterator[Rated]:
    """Yield all scores of an evaluation, each with the scores of its groups and categories."""
    for score in evaluation.rows():
        coverage, parts = score.coverage, dict[str, tuple[CategoryScore, ...]]()
        if score.kind == "analogy":
            answers = evaluation.analogy[score.name][score.measure]
            parts = {"groups": _category_scores(answers.groups), "categories": _category_scores(answers.categories)}
        elif score.kind == "outliers":
            topics = evaluation.outliers[score.name].topics
            parts = {"categories": tuple(CategoryScore(name, value, None) for name, value in topics.items())}
        elif score.kind == "classification":  # all texts are evaluated; the coverage is that of their words
            coverage = evaluation.classification[score.name][score.measure].coverage
        yield Rated(score, coverage, **parts)


def interval_notes(evaluation: Evaluation) -> list[str]:
    """Return a text on the meaning of the intervals for each kind in an evaluation whose scores have intervals."""
    kinds = dict.fromkeys(score.kind for score in evaluation.rows() if score.low is not None)
    return [f"{kind}: {_INTERVALS[kind]}" for kind in kinds if kind in _INTERVALS]


def _category_scores(counts: Mapping[str, tuple[int, int]]) -> tuple[CategoryScore, ...]:
    """Return the scores of categories or groups from their numbers of correct answers and of questions, by name."""
    return tuple(CategoryScore(name, right / n if n else None, n) for name, (right, n) in counts.items())
