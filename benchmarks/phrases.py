"""Phrases against gensim's: the same ones, the time they take beside encoding, and the best of them.

    python -m benchmarks.phrases [--parts 2] [--threshold 10] [--scoring default] [--json]

gensim goes over the text once to learn phrases, and once more to join them. Here shards are read: bigrams are counted,
chosen, and the joined corpus is written. One core each; before, both ran on a part of the text.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, TextIO

from gensim.models.phrases import Phrases as GensimPhrases
from gensim.models.word2vec import LineSentence

from benchmarks.common import finish, one_thread, write_text
from benchmarks.options import Smoke, parsed
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
    """Phrases with their scores, words that are left of the text, and seconds by what took them."""

    scores: dict[str, float]
    words: int
    seconds: dict[str, float]


def run_ours(text: Path, work: Path, params: Params) -> Outcome:
    store, resources, seconds = Store(str(work)), Resources(threads=1), {}
    with one_thread() as client:
        began = time.perf_counter()
        corpus = build_corpus(text, store, params, resources, client)
        seconds["encode"] = time.perf_counter() - began
        began = time.perf_counter()
        build_vocabulary(corpus, store, Params(min_count=1), resources, client)
        seconds["count words"] = time.perf_counter() - began
        began = time.perf_counter()
        joined = build_phrases(corpus, store, params, resources, client)
        seconds["phrases"] = time.perf_counter() - began
    found = Phrases.of(joined, store)
    return Outcome({phrase: found.score for phrase, found in found}, joined.n_tokens, seconds)


def run_gensim(text: Path, params: Params) -> Outcome:
    rules, sentences, seconds = PhraseRules.of(params), LineSentence(str(text), max_sentence_length=sys.maxsize), {}
    began = time.perf_counter()
    model = GensimPhrases(
        sentences,
        min_count=rules.min_count,
        threshold=rules.threshold,
        scoring=rules.scoring,
        delimiter=rules.delimiter,
        max_vocab_size=_UNBOUNDED,
    )
    seconds["learn"] = time.perf_counter() - began
    began = time.perf_counter()
    words = sum(len(joined) for joined in model[sentences])
    seconds["join"] = time.perf_counter() - began
    return Outcome(model.export_phrases(), words, seconds)


def show(tool: str, outcome: Outcome, out: TextIO) -> None:
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in outcome.seconds.items())
    print(f"{tool}: {len(outcome.scores):,} phrases, {outcome.words:,} words are left; {parts}", file=out)


SMOKE = Smoke({"parts": 0.1}, ("daskw2v", "gensim"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=2, help="tenths of the 100 MB corpus")
    parser.add_argument("--threshold", type=float, help="the scoring's own when not given")
    parser.add_argument("--scoring", default="default", choices=["default", "npmi"])
    options = parsed(parser, SMOKE)
    params = Params(phrases=1, phrase_threshold=options.threshold, phrase_scoring=options.scoring)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, sample = write_text(folder / "wiki.txt", options.parts), folder / "sample.txt"
        with text.open("rb") as source:
            sample.write_bytes(b"".join(source.readlines(1 << 20)))
        run_ours(sample, folder / "first", params)
        run_gensim(sample, params)
        ours, theirs = run_ours(text, folder / "work", params), run_gensim(text, params)
    out, tools = sys.stderr if options.json else sys.stdout, {"daskw2v": ours, "gensim": theirs}
    for tool, outcome in tools.items():
        show(tool, outcome, out)
    same, common = ours.scores == theirs.scores, len(ours.scores.keys() & theirs.scores.keys())
    print(f"phrases and scores are {'the same' if same else 'NOT the same'}; {common:,} phrases in common", file=out)
    ratio = ours.seconds["phrases"] / ours.seconds["encode"]
    print(f"the stage takes {ratio:.1f} times as long as encoding", file=out)
    print("the best:", ", ".join(list(ours.scores)[:12]), file=out)
    rows = [
        {"tool": tool, "phrases": len(outcome.scores), "words": outcome.words, "seconds": outcome.seconds}
        for tool, outcome in tools.items()
    ]
    finish(rows, out, as_json=options.json)
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
