"""`daskw2v warm-up`."""

import click

from daskw2v.cli.printing import json_option, print_json
from daskw2v.cli.program import main
from daskw2v.errors import counted
from daskw2v.training.warm_up import warm_up


@main.command("warm-up")
@click.option("--processes", type=click.IntRange(1), help="Processes that compile; one for each core by default.")
@json_option
def warm_up_command(processes: int | None, as_json: bool) -> None:
    """Compile all kernels for this processor, so that runs need not.

    The compiled kernels are stored in NUMBA_CACHE_DIR, or else in XDG_CACHE_HOME or ~/.cache.
    """
    done = warm_up(processes)
    for objective, strategy in done.skipped:
        click.echo(f"Note: {objective} with {strategy} is skipped: it needs a package that is not installed.", err=True)
    if as_json:
        compiled, skipped = (
            [{"objective": objective, "strategy": strategy} for objective, strategy in found]
            for found in (done.trained, done.skipped)
        )
        print_json({"folder": str(done.folder), "compiled": compiled, "skipped": skipped, "seconds": done.seconds})
    elif done.trained:
        trainings = counted(len(done.trained), "combination")
        click.echo(f"Kernels of {trainings} were compiled in {done.seconds:.0f} s: {done.folder}")
    else:
        click.echo(f"All kernels are compiled: {done.folder}")
