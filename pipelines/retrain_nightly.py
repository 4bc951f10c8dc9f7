"""A nightly retraining run from Python: a new version, and its export for services beside it.

    python pipelines/retrain_nightly.py pipelines/retrain_nightly.toml [--full]

Configuration file and exit codes are those of `daskw2v retrain --config`, so a scheduler may call either. The served
version is exported, whether this run published it or an earlier run that was killed before the export.
"""

import argparse
import sys
from pathlib import Path

from daskw2v import Gates, Notices, Params, Policy, Resources, Vectors, export, retrain
from daskw2v.cli.config_file import TABLES as DERIVED
from daskw2v.cli.config_file import get_required, make_inputs, make_settings, read_config, read_table
from daskw2v.cli.exits import one_sentence
from daskw2v.collections.kinds import default_params
from daskw2v.retraining.outcome import Outcome
from daskw2v.stages import Store

TABLES = {"policy": Policy, "gates": Gates, "notices": Notices}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, help="TOML file")
    parser.add_argument("--full", action="store_true", help="train from scratch, on all text")
    options = parser.parse_args()
    values = read_config(options.config, ("inputs", "work", *DERIVED, *TABLES))
    resources = make_settings(Resources, values)
    inputs = make_inputs(get_required(values, "inputs"), values, options.config)
    summary = retrain(
        inputs,
        work=get_required(values, "work"),
        params=make_settings(Params, values, default_params(inputs)),
        resources=resources,
        full=options.full,
        **{name: read_table(cls, values, name, options.config) for name, cls in TABLES.items()},
    )
    print(f"{summary.outcome.label}: {summary.message}")
    if summary.outcome in (Outcome.PUBLISHED, Outcome.NOTHING_NEW):
        publish_export(Store(values["work"], dict(resources.storage_options)), resources)
    return int(summary.outcome)


def publish_export(work: Store, resources: Resources) -> None:
    """Export the served version as safetensors, unless its export exists."""
    vectors = Vectors.open(work.url, resources.storage_options, in_memory=False)
    name = f"{str(vectors.url).rstrip('/').rpartition('/')[2]}.safetensors"
    if name not in (work / "exports").children():
        export(vectors, f"{work.url}/exports/{name}", storage_options=resources.storage_options)
        print(f"{work.url}/exports/{name}")


if __name__ == "__main__":
    with one_sentence():
        sys.exit(main())
