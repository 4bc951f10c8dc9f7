"""Quality by the windows in flight: what a GPU's warps lose by training at once, emulated on one core.

Each of P warps trains pieces of consecutive centers on copies of its contexts' rows, and adds what they gained when
they fall out of reach (`in_flight_kernels`), so that it reads what others are about to move. Time goes in ticks, a
window of each warp: all read what stood there before the tick, which is worse than the truth, or, with --in-turn, each
sees what those before it moved, which is better. Hot rows are the input rows of the most frequent words, which no warp
keeps longer than a window. The longer a piece, the fewer windows in flight are of one article, with the same rare
words.

With --top, each warp has copies of so many nodes of a tree, the most used ones, that see its own moves at once. After
--flush windows, and where the piece ends, it adds what they gained, and takes them anew.

Damping: kappa is the number of windows in flight that a row is expected in, P times the chance that it is one's context
or target. All that is added to a row with a kappa above K is multiplied by K / kappa; K = 0 damps nothing. Copies of
nodes gather the moves of --flush windows: so many times is their kappa.

On 100 MB (one seed), 2112 warps with K = 4 and pieces of 1024 are as good as one; 4224 cost cbow_hs 7 %. Pieces of 64
cost sgns 4 %; without damping, sg_hs diverges at 1056 and sgns (pieces of 64) at 2112. Copies of nodes cost nothing
then, and hot rows gain less than 1 %.

Prints a row for each combination: the mean loss of a pair (CBOW: of a window) over the training, Spearman's
correlations, 3CosAdd accuracy, and the mean of these three scores relative to one window in flight, and to the
package's own training with the same Params.

    python -m benchmarks.in_flight [--objectives sgns] [--in-flight 1 132 528 1056 2112 4224] [--hot 0 64 256 1024]
        [--damping 0 4 16 64] [--piece 64 1024] [--top 0 7 31] [--flush 8] [--in-turn] [--alpha 0.035] [--parts 10]
        [--epochs 3] [--seeds 1] [--cache DIR] [--json]

About a minute for each training. What --cache holds is not trained again.
"""

import argparse
import inspect
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from benchmarks import in_flight_kernels, in_flight_rows
from benchmarks.cache import CODE, kept
from benchmarks.common import ANALOGY, SIMILARITY, finish, one_thread
from benchmarks.in_flight_kernels import Model, TargetSettings, make_work
from benchmarks.options import Smoke, parsed
from benchmarks.texts import Text, encode
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import TrainingError
from daskw2v.evaluation import evaluate
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.base import Rate, is_finite
from daskw2v.objectives.noise import Negatives, negatives_of
from daskw2v.objectives.registry import find_objective, settled, start_alpha
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, keep_thresholds
from daskw2v.shards.layout import digest
from daskw2v.store.storage import Store
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.pipeline import train_model
from daskw2v.types import Float32Array
from daskw2v.vocabulary.huffman import Tree, huffman_tree

Floats = npt.NDArray[np.float64]
Scores = dict[str, float]

COLUMNS = (
    "P", "hot rows", "K", "piece", "top rows", "in a tick", "loss", "WordSim-353", "SimLex-999", "Google",
    "to P=1", "to daskw2v", "words/s",
)  # fmt: skip
SETS = ("ws353", "simlex999", "google_analogy")
HIDDEN = {"sgns": False, "cbow_ns": True, "sg_hs": False, "cbow_hs": True}  # whether contexts predict together
TREES = {"sg_hs", "cbow_hs"}
NO_TREE = huffman_tree(np.empty(0, np.int64))
KERNELS = digest([inspect.getsource(module) for module in (in_flight_kernels, in_flight_rows)])


class Point(NamedTuple):
    """What is emulated.

    Parameters
    ----------
    in_flight, hot
        DeviceTables, and input rows that none of them keeps.
    damping
        K; 0 where nothing is damped.
    piece
        Centers of a piece.
    in_turn
        Whether a warp sees what those before it moved in the same tick.
    top, flush
        Nodes of which each warp has copies, and the windows after which these are taken anew.
    """

    in_flight: int
    hot: int = 0
    damping: float = 0.0
    piece: int = 64
    in_turn: bool = False
    top: int = 0
    flush: int = 8


ALONE = Point(1)


class Emulator:
    """A training in memory, segment by segment.

    Parameters
    ----------
    params
        What is trained.
    counts
        Of all words.
    point
        What is emulated.
    """

    def __init__(self, params: Params, counts: npt.NDArray[np.int64], point: Point) -> None:
        objective = find_objective(params.objective)
        self.params, self.point, self._prepared = params, point, objective.prepare(params, counts)
        self._tree: Tree = getattr(self._prepared, "tree", NO_TREE)
        n_targets = self._prepared.depth if len(self._tree.nodes) else params.negative + 1
        self._sizes, width = objective.tables(params, len(counts)), padded(params.vector_size)
        n_rows = sum(self._sizes.values())
        assert objective.touched is not None
        touched = objective.touched(self._prepared, counts)
        expected = point.in_flight * np.concatenate([touched["input"], touched["output"]])
        self._top = min(point.top, self._sizes["output"]) if len(self._tree.nodes) else 0
        expected[len(counts) : len(counts) + self._top] *= point.flush
        damping = np.minimum(1.0, point.damping / np.maximum(expected, 1e-9)) if point.damping else np.ones(n_rows)
        self.model = Model(huge_zeros(n_rows * width), damping.astype(np.float32), len(counts), width)
        for name, size in self._sizes.items():
            self.table(name)[:] = objective.initial(params, name, np.arange(size))
        self._work = make_work(self.model, point.in_flight, params.window, n_targets, self._top, point.in_turn)

    def table(self, name: str) -> Float32Array:
        """Return the rows of the table "input" or "output", shape (rows, vector_size)."""
        first = 0 if name == "input" else self._sizes["input"]
        rows = self.model.rows.reshape(-1, self.model.width)
        return rows[first : first + self._sizes[name], : self.params.vector_size]

    def train(self, segment: Segment, first: int, last: int, rate: Rate, epoch: int) -> tuple[int, float]:
        """Train a range of centers; return the number of pairs (CBOW: windows), and their summed loss."""
        none = Negatives(0, np.empty(0, np.uint64), np.uint64(0))
        negatives = none if len(self._tree.nodes) else negatives_of(self._prepared, epoch)
        examples, loss = in_flight_kernels.train(
            segment, first, last, self.model, self._work, windows_of(self.params, rate, epoch),
            TargetSettings(negatives, self._tree, self._top, self.point.flush), self.point.hot, self.point.piece,
            HIDDEN[self.params.objective], self.params.cbow_mean, self.point.in_turn,
        )  # fmt: skip
        return int(examples), float(loss)


def read_epochs(text: Text, params: Params) -> list[Segment]:
    """Return all text of each epoch, subsampled."""
    counts, n = text.vocabulary.load().counts, text.corpus.n_tokens
    reader, keep = SegmentReader(text.work, text.corpus, text.vocabulary), keep_thresholds(counts, params.sample)
    keys = (stream(params.seed, Purpose.SUBSAMPLE, epoch) for epoch in range(params.epochs))
    return [reader.read(0, n, params.window, keep, key)[0] for key in keys]


def judged(vectors: Vectors) -> Scores:
    """Return the score of each set."""
    result = evaluate(vectors, SIMILARITY, ANALOGY, analogy_methods=("3cosadd",)).as_dict()
    scores = {name: figures["spearman"] for name, figures in result["similarity"].items()}
    return scores | {name: figures["accuracy"] for name, figures in result["analogy"].items()}


def emulate(text: Text, epochs: Sequence[Segment], params: Params, point: Point) -> Scores:
    """Train, and judge the vectors; without scores where training diverged."""
    known, length = text.vocabulary.load(), text.corpus.n_tokens
    emulator, examples, total = Emulator(params, known.counts, point), 0, 0.0
    whole = ReplicaWork(0, 0, params.epochs * length, start_alpha(params), params.min_alpha)
    began = time.perf_counter()
    for epoch, _, _, rate in whole.pieces(length):
        done, loss = emulator.train(epochs[epoch], 0, len(epochs[epoch].tokens), rate, epoch)
        examples, total = examples + done, total + loss
        if not is_finite(emulator.model.rows):
            return {}
    seconds = time.perf_counter() - began
    speed = known.counts.sum() * params.epochs / seconds
    scores = judged(Vectors(known, emulator.table("input").copy()))
    return {**scores, "loss": total / examples, "words_per_second": float(speed)}


def train_ours(text: Text, params: Params) -> Scores:
    """Train as the package does, on one thread, and judge the vectors; without scores where training diverged."""
    with one_thread() as client:
        try:
            vectors = train_model(text.corpus, text.vocabulary, text.work, params, Resources(threads=1), client)
        except TrainingError:
            return {}
        metrics: dict[str, Any] = vectors.metadata["metrics"]
        return {**judged(vectors), **{name: metrics[name] for name in ("loss", "words_per_second")}}


@dataclass(frozen=True)
class Row:
    """Scores of one training, means over all seeds; none of what diverged. The last two are means of ratios."""

    objective: str
    alpha: float
    point: Point | None
    scores: Scores
    to_one: float | None
    to_package: float | None


def mean_scores(results: Sequence[Scores]) -> Scores:
    """Return the means over all seeds, or nothing where one of them diverged."""
    return {key: statistics.mean(scores[key] for scores in results) for key in results[0]} if all(results) else {}


def ratio(scores: Scores, base: Scores) -> float | None:
    """Return the mean ratio of the sets' scores."""
    return statistics.mean(scores[name] / base[name] for name in SETS) if scores and base else None


class Trainings:
    """Trainings of one text, each done once, and kept in a cache."""

    def __init__(self, text: Text, cache: Store) -> None:
        self._text, self._cache = text, cache
        self._read: dict[int, list[Segment]] = {}

    def score(self, params: Params, point: Point | None) -> Scores:
        """Return the scores of a training: the package's own where there is no point."""
        made = [CODE, self._text.path.stat().st_size, params.as_dict(), *([KERNELS, *point] if point else [])]
        about = {"params": params.as_dict(), "point": point and point._asdict()}
        return kept(self._cache, f"in-flight-{params.objective}-{digest(made)}.json", about, self._maker(params, point))

    def _maker(self, params: Params, point: Point | None) -> Callable[[], Scores]:
        if point is None:
            return lambda: train_ours(self._text, params)
        return lambda: emulate(self._text, self._epochs(params), params, point)

    def _epochs(self, params: Params) -> list[Segment]:
        if params.seed not in self._read:
            self._read = {params.seed: read_epochs(self._text, params)}
        return self._read[params.seed]


def compare(
    objective: str, points: Sequence[Point], trainings: Trainings, options: argparse.Namespace, out: TextIO
) -> list[Row]:
    """Train all points, after the package and one window in flight; print a row of each."""
    params = settled(Params(objective=objective, alpha=options.alpha, epochs=options.epochs))
    print(f"\n{objective}, alpha {params.alpha}, {options.parts} parts, {options.epochs} epochs\n", file=out)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", file=out, flush=True)
    rows: list[Row] = []
    found: dict[Point | None, Scores] = {}
    for point in dict.fromkeys([None, ALONE, *points]):
        results = [trainings.score(params.replace(seed=seed), point) for seed in options.seeds]
        scores = found[point] = mean_scores(results)
        one = ratio(scores, found[ALONE]) if point else None
        rows.append(Row(objective, start_alpha(params), point, scores, one, ratio(scores, found[None])))
        print(line_of(rows[-1]), file=out, flush=True)
    return rows


def line_of(row: Row) -> str:
    """Return a row of the table."""
    about = ["daskw2v", *[""] * 5]
    if row.point:
        damping = f"{row.point.damping:g}" if row.point.damping else ""
        top, time_goes = f"{row.point.top}", "in turn" if row.point.in_turn else "at once"
        if row.point.top:
            top += f", {row.point.flush} windows"
        about = [f"{row.point.in_flight}", f"{row.point.hot}", damping, f"{row.point.piece}", top, time_goes]
    cells = ["diverged", *[""] * 6]
    if row.scores:
        ratios = ["" if value is None else f"{value:.3f}" for value in (row.to_one, row.to_package)]
        scores = [f"{row.scores[name]:.3f}" for name in ("loss", *SETS)]
        cells = [*scores, *ratios, f"{row.scores['words_per_second'] / 1e6:.2f} M"]
    return f"| {' | '.join([*about, *cells])} |"


SMOKE = Smoke(
    {"in_flight": [1, 132], "parts": 0.1, "epochs": 1},
    (*SETS, "loss", "words_per_second"),
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objectives", nargs="+", choices=HIDDEN, default=["sgns"])
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 132, 528, 1056, 2112, 4224], help="warps")
    parser.add_argument("--hot", type=int, nargs="+", default=[0], help="input rows that no warp keeps")
    parser.add_argument("--damping", type=float, nargs="+", default=[0.0], help="K; 0 damps nothing")
    parser.add_argument("--piece", type=int, nargs="+", default=[64], help="consecutive centers that a warp takes")
    parser.add_argument("--top", type=int, nargs="+", default=[0], help="nodes of which each warp has copies")
    parser.add_argument("--flush", type=int, nargs="+", default=[8], help="windows after which they are taken anew")
    parser.add_argument("--in-turn", action="store_true", help="warps see what those before them moved in a tick")
    parser.add_argument("--alpha", type=float, help="learning rate at the start; else the objective's own")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")
    options = parsed(parser, SMOKE)
    if any(options.top) and not TREES.issuperset(options.objectives):
        parser.error(f"--top is for objectives whose targets are nodes: {', '.join(sorted(TREES))}")
    return options


def main() -> None:
    options = parse()
    out, rows = sys.stderr if options.json else sys.stdout, []
    axes = options.in_flight, options.hot, options.damping, options.piece, options.top
    points = [
        Point(in_flight, hot, damping, piece, options.in_turn, top, flush)
        for in_flight, hot, damping, piece, top in itertools.product(*axes)
        for flush in (options.flush if top else [ALONE.flush])
    ]
    with tempfile.TemporaryDirectory() as name:
        trainings = Trainings(encode(Path(name), options.parts), Store(str(options.cache or f"{name}/cache")))
        for objective in options.objectives:
            rows += compare(objective, points, trainings, options, out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
