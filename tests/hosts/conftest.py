import numpy as np
import pytest
from several_hosts import BUCKET, ONE_THREAD, PARAMS, Site

from daskw2v import Resources, train
from tests.support import namespaces


@pytest.fixture(scope="session")
def site():
    """Hosts that run; skipped where this machine, or this user, cannot have them."""
    pytest.importorskip("moto.server", reason="no object store: install moto[server]")
    pytest.importorskip("s3fs", reason="no client for object stores: install s3fs")
    if lacking := namespaces.missing():
        pytest.skip(f"no hosts on this machine: {lacking}")
    with namespaces.network() as net:
        yield Site(namespaces, net, namespaces.kernels())


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = np.concatenate([np.arange(600), rng.zipf(1.2, 24_000) % 600])
    path.write_text("\n".join(" ".join(f"w{w}" for w in line) for line in words.reshape(-1, 12)))
    return path


@pytest.fixture(scope="session")
def remote_text(site, text):
    """The text's URL in the object store."""
    site.files().mkdir("bucket")
    site.files().put_file(str(text), "bucket/text/text.txt")
    return f"{BUCKET}/text/*.txt"


@pytest.fixture(scope="session")
def trained(site, remote_text, local):
    """The URL of a work directory in the object store, with a model in it."""
    local("averaging")  # first, so that its kernels are compiled once
    job = site.train(remote_text, work=f"{BUCKET}/averaging", params=PARAMS["averaging"])
    job.vectors()
    return job.work


@pytest.fixture
def untrained(site, trained):
    """The same without the model: text is encoded, words are counted. The store is well, before and after."""
    files, models = site.files(), f"{trained}/models"
    if files.exists(models):
        files.rm(models, recursive=True)
    yield trained
    site.fault("none")
    site.requests()
    for host in site.hosts:
        host.unlimit()


@pytest.fixture(scope="session")
def local(client, text, tmp_path_factory):
    """A function that trains here, from local files, once for each strategy."""
    made = {}

    def vectors_of(name):
        if name not in made:
            resources = Resources(**ONE_THREAD)
            folder = tmp_path_factory.mktemp(name)
            made[name] = train(text, work=folder, params=PARAMS[name], resources=resources, client=client)
        return made[name]

    return vectors_of
