"""What a billion words cost."""

from benchmarks.cuda.bench import Bench
from benchmarks.cuda.speed import cores
from benchmarks.epochs import our_speed
from daskw2v.config.params import Params
from daskw2v.objectives.registry import settled


def cost(bench: Bench) -> None:
    """Print dollars a billion words of each device that has a price."""
    params, prices = settled(Params(vector_size=128)), {"cuda": bench.options.price, "cpu": bench.options.cpu_price}
    table = bench.table(
        "Cost: a billion words before subsampling, sgns, d=128, N=5, W=5, sample 1e-4, whole tasks",
        ("dollars an hour", "million words/s", "dollars"), ".4f",
    )  # fmt: skip
    priced = {device: price for device, price in prices.items() if price is not None}
    found = bench.measure({device: our_speed(bench.wiki, params, cores(), device) for device in priced})
    for device, price in priced.items():
        speed = found[device]
        dollars = speed.inverse().scaled(price / 3600 * 1e9)
        table.row(f"{device}, {cores()} thread(s)", price, speed.scaled(1e-6), dollars)
