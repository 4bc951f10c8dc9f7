"""What a device does not read is refused before any text is."""

from dataclasses import dataclass, replace

import pytest

from daskw2v import Params, Resources, train
from daskw2v.config.settings import number, setting
from daskw2v.errors import ParameterError
from daskw2v.training.devices import CUDA, DEVICES, check_device
from daskw2v.training.devices.settings import DEVICES as SETTINGS


@pytest.mark.parametrize(
    ("device", "option"),
    [
        (device.name, option)
        for device in SETTINGS.values()
        for other in SETTINGS.values()
        for option in {*other.names()} - {*device.names()}
    ],
)
def test_device__refuses_the_settings_of_other_devices(device, option):
    with pytest.raises(ParameterError, match=rf"{option}=7 changes nothing for device='{device}'; it is for "):
        Resources(device=device, **{option: 7})


@dataclass(frozen=True, kw_only=True, init=False)
class LaterParams(Params):
    clip: float = setting(0.0, "largest update", number(0, 9), stage="train", honoured_by=("device",))


def test_device__refuses_params_that_it_does_not_read(monkeypatch):
    monkeypatch.setitem(DEVICES, "cuda", replace(CUDA, honours=("clip",)))
    with pytest.raises(ParameterError, match=r"clip=1\.0 changes nothing for device='cpu'; it is for cuda"):
        check_device(LaterParams(clip=1.0), Resources())


def test_train__refuses_what_its_device_does_not_read(tmp_path):
    with pytest.raises(ParameterError, match=r"max_in_flight=7 changes nothing for device='cpu'; it is for cuda"):
        train("no.txt", work=tmp_path, params=Params(), max_in_flight=7, threads=1)
