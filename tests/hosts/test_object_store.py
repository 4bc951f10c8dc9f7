"""Text and work in an object store, hosts without a shared filesystem: the bits of local files, whatever goes wrong."""

import os
import textwrap
import uuid
from pathlib import Path

import numpy as np
import pytest
from several_hosts import BUCKET, ONE_THREAD, PARAMS

from daskw2v.cluster.shared_memory import shared_bytes
from daskw2v.training.strategies import STRATEGIES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # with the first test all hosts start


def same(a, b):
    assert a.vocabulary.words == b.vocabulary.words
    np.testing.assert_array_equal(a.vectors[:], b.vectors[:])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_hosts__give_the_bits_of_one_host_with_local_files(site, remote_text, local, strategy):
    expected = local(strategy)  # first, so that its kernels are compiled once
    same(site.train(remote_text, work=f"{BUCKET}/{strategy}", params=PARAMS[strategy]).vectors(), expected)


def test_hosts__share_neither_memory_nor_files(site, trained):
    """So the same bits came over the network."""
    name = f"/tmp/{uuid.uuid4().hex}"
    Path(site.client.root, name[1:]).write_text("of the client")
    assert site.run(f"print(open({name!r}).read())", work=trained).outcome()[:2] == (0, "of the client\n")
    with site.dask() as client:
        assert set(client.run(os.path.exists, name).values()) == {False}
        assert set(client.run(shared_bytes).values()) == {0}


def test_hosts__a_script_finds_what_the_command_line_made(site, trained, remote_text, local):
    """Another client, by the function: it returns the published model and trains nothing."""
    site.requests()
    program = f"""
        import daskw2v
        vectors = daskw2v.train(
            {remote_text!r}, work={trained!r}, params=daskw2v.Params(**{PARAMS["averaging"].as_dict()!r}),
            resources=daskw2v.Resources(scheduler={site.address!r}, storage_options={site.options!r}, **{ONE_THREAD!r}),
        )
        print(vectors.url)
    """
    job = site.run(textwrap.dedent(program), work=trained)
    same(job.vectors(), local("averaging"))
    written = {path.split("/")[3] for method, path, *_ in site.requests()[1] if method == "PUT"}
    assert not written & {"corpora", "shards", "vocabulary", "runs", "models"}


def test_hosts__slow_links_change_nothing(site, untrained, remote_text, local):
    """20 Mbit/s, 15 ms from host to host."""
    with site.network.delayed(0.0075):
        for host in site.hosts:
            host.limit(20)
        same(site.train(remote_text, work=untrained, params=PARAMS["averaging"]).vectors(), local("averaging"))


def test_hosts__a_work_folder_that_they_do_not_share_is_refused(site, remote_text):
    status, _, errors = site.train(remote_text, work="/tmp/work", params=PARAMS["averaging"]).outcome()
    assert status == 2
    assert "2 of 2 workers do not see the work URL /tmp/work" in " ".join(errors.split())
    assert site.options["secret"] not in errors


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "fail", "path": "/shards/", "seconds": 4},
        {"kind": "half", "path": "/shards/", "methods": ["GET"], "requests": 10},
        {"kind": "stall", "path": "/runs/", "seconds": 8},
        {"kind": "half", "path": "/runs/", "methods": ["GET"], "requests": 10},
        {"kind": "vanish", "path": "/models/", "seconds": 4},
    ],
    ids=lambda fault: f"{fault['kind']} {fault['path'].strip('/')}",
)
def test_store__may_be_ill_for_a_while(site, untrained, remote_text, local, fault):
    """While training reads text, while it writes and reads checkpoints, or while the model is published."""
    site.fault(**fault)
    job = site.train(remote_text, work=untrained, params=PARAMS["averaging"], checkpoint_seconds=0)
    same(job.vectors(), local("averaging"))
    assert site.requests()[0]  # it was ill


def test_store__that_stays_ill_is_an_error_that_names_it_and_the_command_goes_on(site, untrained, remote_text, local):
    site.fault("fail", path="/runs/")
    again = {"work": untrained, "params": PARAMS["averaging"], "checkpoint_seconds": 0}
    status, _, errors = site.train(remote_text, **again).outcome()
    assert status == 2, errors
    assert f"{untrained}/runs/" in "".join(errors.split())
    assert site.options["secret"] not in errors
    site.fault("none")
    same(site.train(remote_text, **again).vectors(), local("averaging"))


def test_hosts__of_two_retrainings_at_once_one_is_busy(site, remote_text, local):
    """The lease lies in the object store: it holds whoever sees the work directory apart."""
    expected, work = local("averaging"), f"{BUCKET}/nights"
    program = f"""
        import daskw2v
        summary = daskw2v.retrain(
            {remote_text!r}, work={work!r}, params=daskw2v.Params(**{PARAMS["averaging"].as_dict()!r}),
            resources=daskw2v.Resources(scheduler={site.address!r}, storage_options={site.options!r}, **{ONE_THREAD!r}),
        )
        print(summary.outcome.label)
    """
    jobs = [site.run(textwrap.dedent(program), work=work) for _ in range(2)]
    assert sorted(job.outcome()[:2] for job in jobs) == [(0, "busy\n"), (0, "published\n")]
    again = site.run(textwrap.dedent(program), work=work)
    assert again.outcome()[:2] == (0, "nothing_new\n")
    same(again.vectors(), expected)
