import signal
import time

import pytest

from daskw2v.cli.exits import INTERRUPTED, one_sentence


class Interrupted:
    """An object during whose deletion Ctrl-C comes."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def handles_interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_one_sentence__ends_after_an_interrupt_while_an_object_was_deleted(handles_interrupts, capsys):
    @one_sentence()
    def run():
        Interrupted()
        time.sleep(30)
        pytest.fail("it went on")

    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == "Interrupted. The same command goes on where it stopped.\n"
