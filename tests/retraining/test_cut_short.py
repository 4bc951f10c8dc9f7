"""A night that is cut short before or after any of its steps ends the same when it is called again."""

import importlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from nights_of_text import LOOSE, ONE, PARAMS

from daskw2v import Notices, Vectors, Versions, retrain
from daskw2v.retraining.outcome import Outcome
from tests.support.days import write_day

retrain_module = importlib.import_module("daskw2v.retraining.retrain")  # the package has the function by that name
STEPS = {
    "read": (retrain_module, "read_text"),
    "train": (retrain_module, "write_version"),
    "judge": (retrain_module, "judge"),
    "align": (retrain_module, "find_alignment"),
    "write": (retrain_module, "write_aligned"),
    "finish": (retrain_module, "finish_version"),
    "publish": (Versions, "publish"),
    "clear": (retrain_module, "clear_unused"),
    "tell": (retrain_module, "send_notices"),
    "record": (retrain_module, "record"),
}


class Cut(BaseException):
    """What a killed process raises: nothing catches it."""


@pytest.fixture(scope="module")
def second_night(tmp_path_factory, client):
    """The text of two days, a work directory after the first night, and vectors of the second where nothing happens."""
    folder = tmp_path_factory.mktemp("text")
    for day in (0, 1):
        write_day(folder, day)
    given = {"params": PARAMS, "resources": ONE, "gates": LOOSE, "client": client}
    retrain(folder / "0.txt", work=folder / "work", **given)
    shutil.copytree(folder / "work", folder / "undisturbed")
    retrain(folder / "*.txt", work=folder / "undisturbed", **given)
    return SimpleNamespace(folder=folder, given=given, vectors=Vectors.open(folder / "undisturbed"))


QUICK = {("train", True), ("publish", False), ("tell", True)}
CUTS = [
    pytest.param(
        step,
        after,
        id=f"{'after' if after else 'before'} {step}",
        marks=() if (step, after) in QUICK else pytest.mark.slow,
    )
    for step in STEPS
    for after in (False, True)
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("step", "after"), CUTS)
def test_run_that_was_cut_short__ends_the_same_when_called_again(second_night, tmp_path, monkeypatch, step, after):
    work, report = tmp_path / "work", tmp_path / "told.json"
    shutil.copytree(second_night.folder / "work", work)
    holder, name = STEPS[step]
    whole = getattr(holder, name)

    def run():
        notices = Notices(summary=str(report))
        return retrain(second_night.folder / "*.txt", work=work, notices=notices, **second_night.given)

    def cut(*args, **kwargs):
        if after:
            whole(*args, **kwargs)
        raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(holder, name, cut)
        with pytest.raises(Cut):
            run()
    was_told = report.exists()
    assert was_told is (step == "record" or (step == "tell" and after))
    assert run().outcome is (Outcome.NOTHING_NEW if step == "record" and after else Outcome.PUBLISHED)
    vectors = Vectors.open(work)
    assert Path(vectors.url).name == Path(second_night.vectors.url).name
    assert len(Versions.open(work).all()) == 2
    np.testing.assert_array_equal(vectors.vectors, second_night.vectors.vectors)
    assert not (work / "candidates").exists() or not any((work / "candidates").iterdir())
