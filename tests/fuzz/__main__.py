"""Fuzz one target, guided by coverage: `python -m tests.fuzz TARGET --seconds 600 [--corpus DIR]`.

It needs the extra [fuzz] (atheris, on Linux). A finding is any exception but the package's own errors, an input that
takes more than 10 s of processor time or 120 s, or one that takes more than 1 GB of memory; the input is written beside
the corpus as `crash-...`.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import atheris
import click


def _kernels() -> list[str]:
    """Return the modules that Numba compiles: it knows nothing of what would be added to them."""
    root = Path(__file__).parents[2]
    files = [path for path in (root / "daskw2v").rglob("*.py") if "daskw2v.kernels.jit" in path.read_text()]
    return [".".join(path.relative_to(root).with_suffix("").parts) for path in files]


with atheris.instrument_imports(
    include=["daskw2v"], exclude=["daskw2v.kernels.jit", "daskw2v.kernels.simd", *_kernels()]
):
    from tests.fuzz.targets import TARGETS, clean

_SECONDS, _MOST_SECONDS = 10, 120  # that an input may take: of processor time, which others do not lengthen; at all
_MEGABYTES = 1024  # that it may take, beside what the interpreter and its packages have
_PACKAGES = 768


def _bounded(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return a target that fails where an input takes too much processor time."""

    def run(data: bytes) -> None:
        began = time.process_time()
        target(data)
        if (taken := time.process_time() - began) > _SECONDS:
            raise AssertionError(f"This input took {taken:.0f} s of processor time; {_SECONDS} are the most.")

    return run


@click.command()
@click.argument("name", metavar="TARGET", type=click.Choice([*TARGETS]))
@click.option("--seconds", default=600, show_default=True, help="How long.")
@click.option(
    "--corpus", type=click.Path(path_type=Path), default=Path("fuzz-corpus"), show_default=True, help="Inputs are kept."
)
@click.argument("inputs", nargs=-1, type=click.Path(exists=True))
def main(name: str, seconds: int, corpus: Path, inputs: tuple[str, ...]) -> None:
    """Fuzz TARGET; with INPUTS, run these alone, to see a finding again."""
    target, folder = TARGETS[name], corpus / name
    folder.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(target.seeds()):
        (folder / f"seed-{i:03}").write_bytes(seed)
        target(seed)  # what is compiled or cached at first is not the input's
    limits = [f"-timeout={_MOST_SECONDS}", f"-rss_limit_mb={_MEGABYTES + _PACKAGES}", f"-malloc_limit_mb={_MEGABYTES}"]
    rest = list(inputs) or [f"-max_total_time={seconds}", "-max_len=16384", "-print_final_stats=1", str(folder)]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={corpus}/{name}-", *rest], _bounded(target))
    try:
        atheris.Fuzz()
    finally:
        clean()


if __name__ == "__main__":
    main()
