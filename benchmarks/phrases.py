"""Phrases against gensim's: the same ones, and the time that they take.

gensim goes over the text once to learn phrases, and once more to join them. Here shards are read: bigrams are counted,
chosen, and the joined corpus is written. One core each; before, both ran on a part of the text. It is an error if
phrases or scores differ.

    python -m benchmarks.phrases [--parts 2] [--threshold 10] [--scoring default]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from gensim.models.phrases import Phrases as GensimPhrases
from gensim.models.word2vec import LineSentence

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import one_thread
from benchmarks.stopwatch import stopwatch
from benchmarks.texts import name_of, write_text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.phrases import Phrases
from daskw2v.phrases.build import build_phrases
from daskw2v.phrases.score import PhraseRules
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary

_UNBOUNDED = 1 << 60  # gensim forgets rare bigrams when there are more


class Outcome(NamedTuple):
    """Phrases with their scores, words that are left of the text, and seconds by step."""

    scores: dict[str, float]
    words: int
    seconds: dict[str, float]


def run_ours(text: Path, params: Params) -> Outcome:
    resources, seconds = Resources(threads=1), dict[str, float]()
    with one_thread() as client, tempfile.TemporaryDirectory(dir=text.parent) as work:
        store, took = Store(work), stopwatch()
        corpus = build_corpus(text, store, params, resources, client, None)
        seconds["encode"], took = took().seconds, stopwatch()
        build_vocabulary(corpus, store, Params(min_count=1), resources, client, None)
        seconds["count words"], took = took().seconds, stopwatch()
        joined = build_phrases(corpus, store, params, resources, client, None)
        seconds["phrases"] = took().seconds
        scores = {phrase: found.score for phrase, found in Phrases.of(joined, store)}
    return Outcome(scores, joined.n_tokens, seconds)


def run_gensim(text: Path, params: Params) -> Outcome:
    rules, sentences = PhraseRules.of(params), LineSentence(str(text), max_sentence_length=sys.maxsize)
    seconds, took = dict[str, float](), stopwatch()
    model = GensimPhrases(
        sentences, rules.min_count, rules.threshold, max_vocab_size=_UNBOUNDED, delimiter=rules.delimiter,
        scoring=rules.scoring,
    )  # fmt: skip
    seconds["learn"], took = took().seconds, stopwatch()
    words = sum(len(joined) for joined in model[sentences])
    seconds["join"] = took().seconds
    return Outcome(model.export_phrases(), words, seconds)


def measure(session: Session) -> None:
    options = session.options
    session.text, session.peers = name_of(options.parts), {"gensim": "Phrases of LineSentence, with all bigrams kept"}
    params = Params(phrases=1, phrase_threshold=options.threshold, phrase_scoring=options.scoring)
    text, sample = write_text(session.folder / "wiki.txt", options.parts), session.folder / "sample.txt"
    with text.open("rb") as source:
        sample.write_bytes(b"".join(source.readlines(1 << 20)))
    tools = {"daskw2v": run_ours, "gensim": run_gensim}
    for run in tools.values():
        run(sample, params)
    found = {tool: run(text, params) for tool, run in tools.items()}
    table = session.table(f"Phrases by scoring {options.scoring!r}", ("s", "phrases", "words left"), ".2f")
    for tool, outcome in found.items():
        for step, seconds in outcome.seconds.items():
            table.row(f"{tool}, {step}", seconds, len(outcome.scores), outcome.words)
    ours, theirs = found.values()
    session.note(f"The best: {', '.join(list(ours.scores)[:12])}")
    if (ours.scores, ours.words) != (theirs.scores, theirs.words):
        common = len(ours.scores.keys() & theirs.scores.keys())
        sys.exit(f"Phrases, scores or the words left are not the same; {common:,} phrases are.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, default=2, help="of 10 MB")
    parser.add_argument("--threshold", type=float, help="the scoring's own when not given")
    parser.add_argument("--scoring", default="default", choices=["default", "npmi"])


BENCHMARK = Benchmark(
    __doc__, ("daskw2v/phrases",), Smoke({"parts": 0.1}, ("daskw2v", "gensim")), add_arguments, measure
)

if __name__ == "__main__":
    BENCHMARK.main()
