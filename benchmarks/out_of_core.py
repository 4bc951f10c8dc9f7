"""Text larger than the workers' memory: 2 GB through two workers of 700 MB each, counted exactly.

The text is the corpus again and again, with a suffix on half of its words that changes with each copy, so that the
vocabulary grows too. The independent count is
made by `collections.Counter` while the text is written.

    python -m benchmarks.out_of_core [--gigabytes 2] [--memory "700 MB"] [--parts 10] [--work DIR] [--json]
"""

import argparse
import collections
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

from distributed import Client

from benchmarks.common import Peaks, cluster_of, finish, write_text
from benchmarks.options import Smoke, parsed
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.progress import Progress
from daskw2v.training.pipeline import train


def write_copies(folder: Path, parts: float, gigabytes: float) -> tuple[list[Path], collections.Counter[bytes]]:
    """Write the text, a copy of the parts a file; return the files and the count of all words."""
    base = write_text(folder / "base.txt", parts).read_bytes()
    words = collections.Counter(base.split())
    changed = {word for i, word in enumerate(sorted(words)) if i % 2}
    paths, counts, written = list[Path](), collections.Counter[bytes](), 0
    for copy in range(10_000):
        if written >= gigabytes * 1e9:
            return paths, counts
        suffix = b"" if copy == 0 else b"x%d" % copy
        renamed = {word: word + suffix if word in changed else word for word in words}
        path = folder / f"copy-{copy:03}.txt"
        with path.open("wb") as out:
            for line in base.split(b"\n"):
                out.write(b" ".join([renamed[word] for word in line.split()]) + b"\n")
        for word, count in words.items():
            counts[renamed[word]] += count
        written += path.stat().st_size
        paths.append(path)
    return paths, counts


SMOKE = Smoke({"gigabytes": 0.01, "parts": 0.1}, ("words", "types", "vocabulary"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--memory", default="700 MB")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus, that are copied")
    parser.add_argument("--work", type=Path, help="folder for text and work; a temporary one by default")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        folder = Path(name)
        paths, counts = write_copies(folder, options.parts, options.gigabytes)
        size = sum(path.stat().st_size for path in paths)
        print(
            f"{size / 1e9:.2f} GB in {len(paths)} files, {counts.total():,} words, {len(counts):,} types",
            file=out, flush=True,
        )  # fmt: skip
        with cluster_of(2, options.memory) as client:
            found = run(folder, paths, counts, client, size, out)
    finish(found, out, as_json=options.json)
    if found["workers killed"] or not (found["words equal"] and found["vocabulary equal"]):
        sys.exit(1)


def run(
    folder: Path, paths: list[Path], counts: collections.Counter[bytes], client: Client, size: int, out: TextIO
) -> dict[str, Any]:
    """Count, encode and train; print and return what that took, and whether all was counted."""
    peaks = Peaks(list(client.run(os.getpid).values()))
    params = Params(vector_size=32, epochs=1, n_replicas=2, rounds_per_epoch=8, max_final_vocab=200_000)
    stages: dict[str, float] = {}
    began = time.perf_counter()

    def listen(progress: Progress) -> None:
        stages[progress.stage] = time.perf_counter() - began

    vectors = train(
        paths, work=folder / "work", params=params, resources=Resources(threads=1), client=client, listener=listen
    )
    peaks.stop()
    speed, largest = size / 1e6 / stages["vocabulary"], [rss / 1e6 for rss in peaks.rss.values()]
    killed = sum(rss < 0 for rss in peaks.rss.values())
    print("seconds until the end of:", {stage: round(seconds, 1) for stage, seconds in stages.items()}, file=out)
    print(f"count + encode: {speed:.0f} MB/s on two workers", file=out)
    print("peak memory of the workers:", ", ".join(f"{rss:.0f} MB" for rss in largest), file=out)
    print(f"workers killed: {killed}", file=out)
    kept = sorted(((-n, word) for word, n in counts.items() if n >= params.min_count))[: params.max_final_vocab]
    expected = [(word.decode(), -n) for n, word in kept]
    known = list(zip(vectors.vocabulary.words, vectors.vocabulary.counts.tolist(), strict=True))
    raw = vectors.metadata["vocabulary"]
    whole = (raw["raw_words"], raw["raw_types"]) == (counts.total(), len(counts))
    print(
        f"counted: {raw['raw_words']:,} words, {raw['raw_types']:,} types, equal to the independent count: {whole}",
        file=out,
    )
    print(f"vocabulary: {len(known):,} words, equal to the independent count: {known == expected}", file=out)
    return {
        "seconds until the end of": stages, "MB/s": speed, "peaks, MB": largest, "workers killed": killed,
        "words": raw["raw_words"], "types": raw["raw_types"], "words equal": whole, "vocabulary": len(known),
        "vocabulary equal": known == expected,
    }  # fmt: skip


if __name__ == "__main__":
    main()
