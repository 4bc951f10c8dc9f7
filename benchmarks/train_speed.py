"""SGNS training speed against gensim's fastest way (`corpus_file`), in the same run on the same text.

Counted in raw in-vocabulary corpus words per second, before subsampling. What is timed is the whole task that a
worker runs (reading shards, subsampling, training, copying the model in and out), and gensim's `train`.

    python -m benchmarks.train_speed [--parts 3] [--times 5] [--settings "d=100 sample 1e-4"] [--json]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from gensim.models import Word2Vec

from benchmarks.common import alternate, machine, one_thread, spread, write_text
from daskw2v.objectives import find_objective
from daskw2v.params import Params, Resources
from daskw2v.shards.encode import build_corpus
from daskw2v.storage import Store
from daskw2v.strategies.blocks import cut_tables, initial_block
from daskw2v.strategies.replica import Run, train_replica
from daskw2v.strategies.schedule import Work
from daskw2v.vocabulary.count import build_vocabulary

SETTINGS = {
    "d=100 sample 1e-4": Params(vector_size=100, sample=1e-4),
    "d=128 sample off": Params(vector_size=128, sample=0),
    "d=300 sample 1e-4": Params(vector_size=300, sample=1e-4),
}


@dataclass
class Row:
    objective: str
    setting: str
    threads: int
    tool: str
    words_per_second: float
    spread: str


def ours(work: Store, text: Path, params: Params, threads: int) -> Callable[[], float]:
    resources = Resources(threads=1)
    with one_thread() as client:
        corpus = build_corpus(text, work, params, resources, client)
        vocabulary = build_vocabulary(corpus, work, params, resources, client)
    run = Run(work, corpus.name, vocabulary, params, "cpu", threads)
    blocks = cut_tables(find_objective(params.objective).tables(params, vocabulary.size), params.vector_size)
    rows = [initial_block(params, block) for block in blocks]

    def measure() -> float:
        began = time.perf_counter()
        _, totals = train_replica(run, Work(0, 0, corpus.n_tokens, 0.05, 0.01), blocks, *rows)
        return totals.words / (time.perf_counter() - began)

    measure()  # compiles
    return measure


def gensims(text: Path, params: Params, threads: int) -> Callable[[], float]:
    model = Word2Vec(
        vector_size=params.vector_size, window=params.window, min_count=params.min_count, sample=params.sample,
        negative=params.negative, sg=1, workers=threads,
    )  # fmt: skip
    model.build_vocab(corpus_file=str(text))
    words = sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)

    def measure() -> float:
        began = time.perf_counter()
        model.train(
            corpus_file=str(text),
            total_examples=model.corpus_count,
            total_words=model.corpus_total_words,
            epochs=1,
        )
        return float(words) / (time.perf_counter() - began)

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=3, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        text = write_text(Path(folder) / "wiki.txt", options.parts)
        work = Store(f"{folder}/work")
        for setting in options.settings:
            params = SETTINGS[setting]
            for threads in (1, 2):
                runs = {
                    "daskw2v": ours(work, text, params, threads),
                    "gensim": gensims(text, params, threads),
                }
                for tool, speeds in alternate(runs, options.times).items():
                    rows.append(Row("sgns", setting, threads, tool, statistics.median(speeds), spread(speeds)))
                if not options.json:
                    report(rows[-2], rows[-1])
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else machine())


def report(ours: Row, gensims: Row) -> None:
    print(
        f"{ours.objective} {ours.setting} {ours.threads} thread(s): daskw2v {ours.words_per_second / 1e6:.2f} "
        f"({ours.spread}), gensim {gensims.words_per_second / 1e6:.3f} ({gensims.spread}) million words/s: "
        f"{ours.words_per_second / gensims.words_per_second:.1f}x",
        flush=True,
    )


if __name__ == "__main__":
    main()
