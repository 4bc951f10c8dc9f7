"""Hosts that others cannot reach for a while: packets vanish, and nobody is told."""

import time

import numpy as np
import pytest
from several_hosts import PARAMS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # with the first test all hosts start
GIVEN_UP = 16  # seconds after which Dask has given up a connection, by what several_hosts sets


def test_hosts__a_worker_that_is_cut_off_and_comes_back_changes_nothing(site, untrained, remote_text, local):
    job = site.train(remote_text, work=untrained, params=PARAMS["averaging"], checkpoint_seconds=0)
    site.await_request("PUT", "/runs/")
    with site.apart(site.workers[0]):
        site.await_workers(1)
    site.await_workers(2)
    np.testing.assert_array_equal(job.vectors().vectors[:], local("averaging").vectors[:])


def test_hosts__a_client_that_is_cut_off_for_seconds_goes_on(site, untrained, remote_text, local):
    job = site.train(remote_text, work=untrained, params=PARAMS["averaging"], checkpoint_seconds=0)
    site.await_request("PUT", "/runs/")
    with site.apart(site.client):
        time.sleep(4)
    np.testing.assert_array_equal(job.vectors().vectors[:], local("averaging").vectors[:])


def test_hosts__a_client_that_is_cut_off_for_long_says_so_and_its_command_goes_on(site, untrained, remote_text, local):
    again = {"work": untrained, "params": PARAMS["averaging"], "checkpoint_seconds": 0}
    job = site.train(remote_text, **again)
    site.await_request("PUT", "/runs/")
    with site.apart(site.client):
        time.sleep(GIVEN_UP)
    status, _, errors = job.outcome()
    assert (status, "The same command goes on" in " ".join(errors.split())) == (2, True)
    np.testing.assert_array_equal(site.train(remote_text, **again).vectors().vectors[:], local("averaging").vectors[:])


@pytest.mark.timeout(900)  # some 200 s alone
@pytest.mark.parametrize(("delay", "loss"), [(0.025, 0.01), (0.0025, 0.05)])
def test_hosts__packets_that_are_lost_or_take_long_change_nothing(site, untrained, remote_text, local, delay, loss):
    """A packet and its answer pass four links: 100 ms, or 10."""
    with site.network.delayed(delay, loss):
        vectors = site.train(remote_text, work=untrained, params=PARAMS["averaging"]).vectors(800)
        np.testing.assert_array_equal(vectors.vectors[:], local("averaging").vectors[:])
