import signal
import time

import pytest

from daskw2v.cli.exits import INTERRUPTED, one_sentence
from daskw2v.errors import Daskw2vError
from tests.support.secret_urls import SECRET, URLS


class Interrupted:
    """An object during whose deletion Ctrl-C comes."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def handles_interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("wants_traceback", [False, True])
def test_one_sentence__shows_no_secret_of_a_library(wants_traceback, capsys):
    @one_sentence(lambda: wants_traceback)
    def run():
        try:
            raise OSError(f"nothing at {URLS[0]}")
        except OSError as error:
            raise (Daskw2vError("It failed.") if wants_traceback else error) from error

    with pytest.raises(SystemExit):
        run()
    shown = capsys.readouterr().err
    assert "nothing at https://...@host/a.txt" in shown
    assert SECRET not in shown


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
