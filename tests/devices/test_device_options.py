"""What a device does not read is refused before any text is."""

import pytest

from daskw2v import Params, Resources, train
from daskw2v.devices import DEVICES, check_device
from daskw2v.errors import ParameterError


@pytest.mark.parametrize(
    ("device", "option"),
    [
        (name, option)
        for name, device in DEVICES.items()
        for other in DEVICES.values()
        for option in other.options
        if option not in device.options
    ],
)
def test_device__refuses_what_it_does_not_read(device, option):
    with pytest.raises(ParameterError, match=rf"{option}=7 changes nothing for device='{device}'; it is for "):
        check_device(Resources(device=device, **{option: 7}))


def test_train__refuses_what_its_device_does_not_read(tmp_path):
    with pytest.raises(ParameterError, match=r"max_in_flight=7 changes nothing for device='cpu'; it is for cuda"):
        train("no.txt", work=tmp_path, params=Params(), resources=Resources(max_in_flight=7, threads=1))
