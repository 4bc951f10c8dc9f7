"""Tables 2 and 3 of Stergiou et al. (2017), "Distributed Negative Sampling": quality and time of its three rules.

Quality: one worker that trains windows against strategy `rotation` with each rule, on 100 MB of Wikipedia. Time: the
same with 1 and 2 workers of one thread, dealing included, and what workers sent each other in an epoch, as Dask counted
it, against what the paper's own scheme would send for this corpus: two vectors for each pair with TNS, four with SNS,
2 (N + 1) with BNS, of the pairs whose words have different owners.

    python -m benchmarks.distributed_negative_sampling [--tables quality time] [--rules tns sns bns] [--partitions 8]
        [--more 64] [--seeds 1 2 3] [--epochs 5] [--parts 10] [--times 3] [--cache DIR] [--json]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client

from benchmarks.common import alternate, cluster_of, finish, spread, write_text
from benchmarks.options import Smoke, parsed
from benchmarks.quality import Place, Variant, compare, report
from daskw2v import Params, Resources, Store, build_corpus, build_vocabulary, train_model
from daskw2v.objectives.registry import settled

ONE = "one worker"
_OFTEN = 16  # passes an epoch with bns


@dataclass(frozen=True)
class Time:
    """Median seconds of a training, its spread, seconds of dealing in it, and MB sent an epoch, here and there."""

    variant: str
    workers: int
    seconds: float
    spread: str
    deal_seconds: float
    sent_mb: float
    paper_mb: float | None


class Trainer:
    """Trains on a cluster; counts what its workers send each other."""

    def __init__(self, client: Client, text: Path, work: Store) -> None:
        self._client, self._text, self._work, self._runs = client, text, work, 0
        self.last: dict[str, Any] = {}

    def sent(self) -> int:
        return sum(self._client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    def train(self, params: Params) -> float:
        """Train a model of a seed not used before; return the seconds of all rounds or passes."""
        self._runs += 1
        params, resources = params.replace(seed=1000 * id(self) % 2**40 + self._runs), Resources(threads=1)
        corpus = build_corpus(self._text, self._work, params, resources, self._client)
        vocabulary = build_vocabulary(corpus, self._work, params, resources, self._client)
        before = self.sent()
        vectors = train_model(corpus, vocabulary, self._work, params, resources, self._client)
        metrics = vectors.metadata["metrics"]
        self.last = {**metrics, "sent": self.sent() - before}
        return float(metrics["seconds"])


def variants_of(options: argparse.Namespace) -> dict[str, Params]:
    """Return what is compared; the first is what the others are measured by."""
    plain = settled(Params(epochs=options.epochs))
    turned = plain.replace(strategy="rotation", n_partitions=options.partitions)
    several = {f"{rule}, p={options.partitions}": turned.replace(negative_rule=rule) for rule in options.rules}
    return {ONE: plain, **several}


def judged_of(options: argparse.Namespace) -> dict[str, Params]:
    """Return what is compared by quality: with bns, partitions meet twice as often.

    Its negatives wait in other buckets than their pairs, the longer the fewer passes there are: with 8 an epoch
    SimLex-999 is 2.6 % below one worker's, with 16 1.6 % (five epochs).
    """
    variants = variants_of(options)
    often = {"negative_rule": "bns", "passes_per_epoch": _OFTEN}
    return {name: p.replace(**often) if p.negative_rule == "bns" else p for name, p in variants.items()}


def more_of(options: argparse.Namespace) -> dict[str, Params]:
    """Return trainings with more partitions."""
    turned = variants_of(options)[ONE].replace(strategy="rotation")
    return {f"tns, p={p}": turned.replace(n_partitions=p) for p in options.more}


def paper_bytes(params: Params, pairs: int, workers: int) -> float:
    """Return the bytes that the paper's scheme sends for so many pairs: rows that go out, gradients that come back."""
    vectors = {"tns": 2, "sns": 4, "bns": 2 * (params.negative + 1)}[params.negative_rule]
    return vectors * 4.0 * params.vector_size * pairs * (workers - 1) / workers


def times_of(
    variants: Mapping[str, Params], clusters: Mapping[int, Client], text: Path, folder: Path, small: Path, times: int
) -> list[Time]:
    """Train each variant so many times on each of the clusters, whose numbers of workers are given, in turn."""
    trainers = {n: Trainer(client, text, Store(str(folder / "times"))) for n, client in clusters.items()}
    runs = [(name, n) for name in variants for n in clusters if n == 1 or name != ONE]
    for params in variants.values():  # the first time compiles
        for client in clusters.values():
            warm = Trainer(client, small, Store(str(folder / "warm")))
            warm.train(params.replace(epochs=1, passes_per_epoch=None))
    details: dict[tuple[str, int], dict[str, Any]] = {}

    def run_of(name: str, n: int) -> float:
        seconds = trainers[n].train(variants[name])
        details[name, n] = trainers[n].last
        return seconds

    seconds = alternate({f"{name}|{n}": partial(run_of, name, n) for name, n in runs}, times)
    rows = []
    for name, n in runs:
        params, last, values = variants[name], details[name, n], seconds[f"{name}|{n}"]
        dealt = sum(entry.get("deal_seconds", 0.0) for entry in last["history"])
        paper = None
        if params.strategy == "rotation" and n > 1:
            paper = paper_bytes(params, last["pairs"] / params.epochs, n) / 1e6
        sent = last["sent"] / params.epochs / 1e6
        rows.append(Time(name, n, statistics.median(values), spread(values), dealt, sent, paper))
    return rows


SMOKE = Smoke(
    {"rules": ["bns"], "partitions": 2, "more": [3], "seeds": [1], "epochs": 1, "parts": 0.1, "times": 1},
    (ONE, "bns", "p=3", "2 replicas, averaging", "google_analogy"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=["quality", "time"], default=["quality", "time"])
    parser.add_argument("--rules", nargs="+", default=["bns", "sns", "tns"])
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--more", type=int, nargs="*", default=[64], help="partitions of more trainings")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, list[Any]()
    variants = variants_of(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = write_text(folder / "wiki.txt", options.parts)
        small = write_text(folder / "small.txt", min(1, options.parts))
        if "quality" in options.tables:
            place = Place(text, folder / "work", Store(str(options.cache or folder / "cache")), 1)
            judged = {n: Variant("daskw2v", p) for n, p in judged_of(options).items()}
            rows += compare(judged, options.seeds, place)
            report(rows, out)
            if options.more:
                few = {n: Variant("daskw2v", p) for n, p in {ONE: variants[ONE], **more_of(options)}.items()}
                found = compare(few, options.seeds, place)
                report(found, out)
                rows += found
        if "time" in options.tables:
            several = {**variants, "2 replicas, averaging": variants[ONE].replace(n_replicas=2)}
            with cluster_of(1) as one, cluster_of(2) as two:
                times = times_of(several, {1: one, 2: two}, text, folder, small, options.times)
            for time in times:
                paper = "" if time.paper_mb is None else f" (the paper's scheme: {time.paper_mb:,.0f} MB)"
                print(
                    f"{time.variant}, {time.workers} workers: {time.seconds:.1f} s ({time.spread}), of them "
                    f"{time.deal_seconds:.1f} s dealing; sent {time.sent_mb:,.1f} MB an epoch{paper}",
                    file=out,
                )
            rows += times
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
