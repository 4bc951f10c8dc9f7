"""Quality of one replica and of several, by merge rule, on the corpus of 100 MB of Wikipedia.

The similarity figures are Spearman's rank correlation, the analogies 3CosAdd accuracy over all words.

    python -m benchmarks.quality [--replicas 8] [--rules momentum mean] [--seeds 1] [--work DIR]
"""

import argparse
import tempfile
import time
from collections.abc import Iterator

from distributed import Client, LocalCluster

from benchmarks.common import ANALOGY, SIMILARITY, machine, wiki_parts
from daskw2v.evaluation import evaluate
from daskw2v.params import Params, Resources
from daskw2v.train import train


def experiments(replicas: list[int], rules: list[str], seeds: int) -> Iterator[Params]:
    for seed in range(1, seeds + 1):
        yield Params(seed=seed)
        for n in replicas:
            for rule in rules:
                yield Params(seed=seed, n_replicas=n, merge=rule)


def measure(params: Params, work: str, client: Client) -> dict[str, float]:
    began = time.perf_counter()
    vectors = train(wiki_parts(), work=work, params=params, resources=Resources(threads=1), client=client)
    seconds = time.perf_counter() - began
    report = evaluate(vectors, SIMILARITY, ANALOGY)
    scores = {name: result["spearman"] for name, result in report["similarity"].items()}
    scores |= {name: result["accuracy"] for name, result in report["analogy"].items()}
    return {**scores, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, nargs="*", default=[8])
    parser.add_argument("--rules", nargs="*", default=["momentum", "mean"])
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as work,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        one: dict[str, float] = {}
        for params in experiments(options.replicas, options.rules, options.seeds):
            scores = measure(params, work, client)
            one = scores if params.n_replicas == 1 else one
            name = "one replica" if params.n_replicas == 1 else f"{params.n_replicas} replicas, {params.merge}"
            figures = ", ".join(
                f"{key} {value:.3f} ({value / one[key]:.1%})" for key, value in scores.items() if key != "seconds"
            )
            print(f"seed {params.seed}, {name}: {figures}; {scores['seconds']:.0f} s", flush=True)
    print(machine())


if __name__ == "__main__":
    main()
