"""Secrets of storage_options and URLs are used, and appear nowhere: not in logs, errors, manifests, pages or reprs."""

import logging
import traceback

import fsspec
import pytest
from distributed import Client
from fsspec.implementations.memory import MemoryFileSystem

from daskw2v import Params, Resources, report, train
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import Daskw2vError, ParameterError
from daskw2v.evaluation.similarity import read_pairs
from daskw2v.models.formats.export import export
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.models.queries.vectors import Vectors
from daskw2v.safe_text import masked, without_secrets
from daskw2v.store.storage import Store
from daskw2v.store.urls import Options, refuse_secret
from tests.support.command_line import invoke
from tests.support.secret_urls import SECRET, URLS

OPTIONS = {"password": SECRET}
TEXT = "the quick brown fox jumps over the lazy dog\n" * 30
TINY = {"vector_size": 4, "min_count": 1, "epochs": 1, "sample": 0}


class Guarded(MemoryFileSystem):
    """A filesystem that gives nothing without its password, and fails where a file's name says so."""

    protocol = "guarded"
    store = {}  # noqa: RUF012  # as of the class it is made of
    pseudo_dirs = [""]  # noqa: RUF012
    cachable = False

    def __init__(self, *args, password=None, **kwargs):
        super().__init__(*args, **kwargs)
        if password != SECRET:
            raise PermissionError("the password is missing or wrong")

    def _open(self, path, mode="rb", **kwargs):
        if "broken" in path and mode == "rb":
            raise PermissionError(f"{path} is not yours")
        return super()._open(path, mode, **kwargs)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("guarded://", "memory://"))


@pytest.fixture(autouse=True)
def files():
    """Files that are found by the password alone."""
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    fs = Guarded(password=SECRET)
    fs.store.clear()
    fs.pipe_file("/text/a.txt", TEXT.encode())
    fs.pipe_file("/text/broken.txt", TEXT.encode())
    fs.pipe_file("/sets/pairs.tsv", b"quick\tbrown\t7\nlazy\tdog\t3\nfox\tdog\t5\n")
    return fs


@pytest.fixture(scope="module")
def cluster():
    """A cluster in this process, whose logs are seen."""
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
        yield client


def _resources(**others):
    return Resources(storage_options=OPTIONS, **others)


def _told(error):
    """Return all that a user may see of an error."""
    return "".join([str(error), repr(error), *traceback.format_exception(error)])


@pytest.mark.slow
def test_training__leaves_no_secret_anywhere(files, cluster, caplog, capfd, tmp_path):
    said = []
    with caplog.at_level(logging.DEBUG):
        resources = _resources(eval_similarity=("guarded://sets/pairs.tsv",))
        vectors = train(
            "guarded://text/a.txt",
            work="guarded://work",
            params=Params(**TINY),
            resources=resources,
            client=cluster,
            listener=said.append,
        )
        page = report(vectors, str(tmp_path / "page.html"))
    written = b"".join(files.cat(files.find("/work")).values())
    assert b"quick" in written
    assert SECRET.encode() not in written
    assert SECRET not in repr((said, vectors, vectors.metadata, resources))
    assert SECRET not in (tmp_path / "page.html").read_text() + page
    assert SECRET not in caplog.text + "".join(capfd.readouterr())
    told = cluster.run_on_scheduler(
        lambda dask_scheduler: repr(
            [*((t.key, t.run_spec, t.prefix) for t in dask_scheduler.tasks.values()), dask_scheduler.get_events()]
        )
    )
    assert SECRET not in told


def test_task__that_fails_is_logged_without_its_secrets(cluster, caplog):
    store, options, resources = Store("guarded://work", OPTIONS), Options(OPTIONS), _resources()

    def fail(*given):
        raise ValueError("on purpose")

    with caplog.at_level(logging.DEBUG), pytest.raises(ValueError, match="on purpose"):
        cluster.submit(fail, store, options, resources, pure=False).result()
    assert "Compute Failed" in caplog.text
    assert SECRET not in caplog.text + repr((store, options, resources))


def test_text__that_cannot_be_read_is_told_without_secrets(cluster, caplog, capfd):
    with caplog.at_level(logging.DEBUG), pytest.raises((Daskw2vError, OSError)) as error:
        train(
            "guarded://text/broken.txt",
            work="guarded://work",
            params=Params(**TINY),
            resources=_resources(),
            client=cluster,
        )
    assert SECRET not in _told(error.value) + caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "read",
    [
        lambda: Vectors.open("guarded://nowhere", OPTIONS),
        lambda: import_word2vec("guarded://text/broken.txt", storage_options=OPTIONS),
        lambda: read_pairs("guarded://text/broken.txt", OPTIONS),
        lambda: find_sources("guarded://none/*.txt", storage_options=OPTIONS),
        lambda: Store("guarded://text", OPTIONS).read_range("a.txt", 0, 10**6),
        lambda: Store("guarded://text", OPTIONS).open_group(),
    ],
)
def test_failure__is_told_without_options(read):
    with pytest.raises(Daskw2vError) as error:
        read()
    assert SECRET not in _told(error.value)


VECTORS = Vectors.__new__(Vectors)  # no method of it is reached


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "use",
    [
        find_sources,
        Store,
        Vectors.open,
        import_word2vec,
        read_pairs,
        lambda url: export(VECTORS, url, "text"),
        lambda url: Params(vocabulary=url),
        lambda url: Resources(eval_similarity=(url,)),
        lambda url: train("a.txt", work=url),
    ],
    ids=["inputs", "store", "model", "word2vec", "set", "export", "list", "sets", "work"],
)
def test_url__that_holds_a_secret_is_refused_without_showing_it(use, url):
    with pytest.raises(ParameterError, match=r"holds a secret.*storage_options") as error:
        use(url)
    assert SECRET not in _told(error.value).replace(f"'{url}'", "")  # the test's own frames are no one's
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("url", URLS)
def test_url__is_shown_without_its_secret_alone(url):
    shown = without_secrets(url)
    assert SECRET not in shown
    assert "host" in shown or "bucket" in shown
    assert masked(f"Nothing is at ({url!r}, {url}).") == f"Nothing is at ({shown!r}, {shown})."
    assert without_secrets({url: [(url, 1)]}) == {shown: [(shown, 1)]}
    assert masked(shown) == without_secrets(shown) == shown


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a.txt",
        "/data/a:b@c.txt",
        "abfs://container@account.dfs.core.windows.net/a",
        "hdfs://name:8020/a@b",
        "https://host/a?page=1",
        "part-?.txt",
        "sftp://user@host/a",
        "hdfs://user@name:8020/a",
        "github://owner:repository@main/texts/a.txt",
        "https://host/a@b.txt",
        "https://host/a.txt?mail=a@b",
        "https://host/a.txt?barcode=1&country_code=de&encoding=utf-8",
        "https://host/a.txt?keyword=a&author=b&monkey=c&design=d&signal=e&passage=f&compass=g&tokenizer=h",
        "https://host/a.txt?versionId=3&download=1&raw=true&ref=main#L10",
        "https://bucket.s3.amazonaws.com/a.txt?versionId=abc",
        "https://storage.googleapis.com/bucket/a.txt?generation=1&alt=media",
        "zip://a@b.txt::https://host/a.zip",
        "gs://bucket/2026-01-01T00:00:00@host/a.txt",
        "https://host:8080/a@b",
        "https://host:8080?mail=a@b",
        "https://host?time=10:30@b",
        "https://[2001:db8::1]:80/a@b",
        "zip://folder::https://host/a@b.zip",
        "tcp://host:8786",
    ],
)
def test_url__without_a_secret_is_as_it_was(url):
    refuse_secret("url", url)
    assert masked(url) == without_secrets(url) == url


def test_regular_expression__is_no_url():
    pattern = r"regex:https?://\S+|\S+:\S+@\S+"
    assert Params(tokenizer=pattern).tokenizer == without_secrets(pattern) == pattern


def test_options__show_their_names_alone():
    assert repr(Options(OPTIONS)) == "{'password': ...}"
    assert SECRET not in repr(_resources())
    assert dict(_resources().storage_options) == OPTIONS
    with pytest.raises(ParameterError, match=r"storage_options=a str \(not shown.* is not a mapping") as error:
        Resources(storage_options=f"password={SECRET}")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("line", [["--storage-option", SECRET], ["--storage-option", f"={SECRET}"]])
def test_command__does_not_repeat_what_is_no_option(line):
    done = invoke("info", "guarded://work", *line)
    assert done.exit_code == 2
    assert SECRET not in done.output


def test_command__tells_errors_without_secrets():
    line = ["info", "guarded://work", "--storage-option", f"password={SECRET}", "--debug"]
    done = invoke(*line)
    assert done.exit_code == 2
    assert "There is no model at guarded://work" in done.output
    assert SECRET not in done.output
