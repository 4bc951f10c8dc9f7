"""No secret leaves, no place is published: a mark is planted in every setting, and what is shown is searched for it.

Settings, exports, commands and calls are found here by themselves. A new one is covered, or fails.
"""

import inspect
import pickle
import re
from dataclasses import fields
from types import FunctionType

import click
import numpy as np
import pytest

import daskw2v
from daskw2v import Params, Resources, Vectors, report
from daskw2v.cli import main
from daskw2v.config.choice import known_fields
from daskw2v.config.settings import Settings, get_default
from daskw2v.errors import DamageError, Daskw2vError, ParameterError
from daskw2v.models.formats import export as exporting
from daskw2v.progress import Progress
from daskw2v.stages import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke
from tests.support.secret_urls import SECRET, URLS

KINDS = URLS[::4]
PRIVATE = "customer-acme"
PUBLIC = [getattr(module, name) for module in (daskw2v, daskw2v.stages) for name in module.__all__]
HERE = r"\b(URLs?|URI|path|folder|directory|address|list of words)\b"  # what the help of a field calls a place


def _below(cls):
    return [one for each in cls.__subclasses__() for one in ([] if each._is_part else [each]) + _below(each)]


SETTINGS = sorted({cls for cls in _below(Settings) if cls.__module__.startswith("daskw2v.")}, key=lambda c: c.__name__)
FIELDS = [pytest.param(cls, f, id=f"{cls.__name__}.{f.name}") for cls in SETTINGS for f in fields(cls)]


def _told(error):
    """Return what is shown of an error, those before it and what a worker would send of it."""
    before = [each for each in (error.__cause__, error.__context__) if each is not None]
    return f"{error} {error!r} {vars(error)} {pickle.dumps(error)}" + "".join(map(_told, before))


def _made(cls, name, value):
    """Return what is shown of settings, or of the error where they are refused."""
    try:
        return repr(cls(**{name: value}))
    except Daskw2vError as error:
        return _told(error)


def _shapes(text):
    """Yield text in the forms that settings take."""
    yield from (text, [text], (text, text), {text: 0.5}, {"name": text}, [[("day", "=", text)]], ((text, 1.0),))


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_setting__that_is_shown_holds_no_secret(cls, field):
    for value in (shape for url in KINDS for shape in _shapes(url)):
        assert SECRET not in _made(cls, field.name, value), "it takes a secret, and shows it: give it secret=True"


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_setting__that_names_a_place_says_so(cls, field):
    """Where the help speaks of a place, the constraint has to, unless no text fits, or only names do."""
    takes = any(field.metadata["check"](value) for value in ("https://host/x", "/x.prom", ("/x",)))
    if takes and field.repr and re.search(HERE, field.metadata["help"]) and (cls, field.name) not in NO_PLACES:
        assert field.metadata["is_location"], "declare it by LOCATION, URL, URLS or VECTORS of config.settings"


NO_PLACES = {
    (Resources, "scheduler"),
    (Resources, "host"),  # addresses of Dask
    (Params, "base_model"),  # the name of a version
}


@pytest.fixture
def vectors():
    """Vectors that an older release has trained: all settings that take text have a place and a secret."""
    secret, place = f"https://user:{SECRET}@host/{PRIVATE}", f"s3://{PRIVATE}/x#{'0' * 20}"
    params = {name: place if f.metadata["is_location"] else get_default(f) for name, f in known_fields(Params).items()}
    metadata = {
        "params": {**params, "later": place, "column": f"https://user:{SECRET}@host/x"},
        "corpus": {"tokens": 12, "identity": secret, "bad_blocks": [{"url": place, "error": secret}]},
        "resources": {"device": "cpu", "later": [secret]},
        "plan": {"strategy": "averaging", "why": secret},
        "retraining": {"scores": {}, "before": {secret: secret}},
    }
    words = [f"word{i}" for i in range(12)]
    rows = np.random.default_rng(0).standard_normal((12, 8), np.float32)
    return Vectors(Vocabulary.from_words(words, range(12, 0, -1)), rows, metadata, f"s3://{PRIVATE}/work")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", [*exporting._WRITERS, *exporting._FOLDER_WRITERS])
def test_export__names_no_place(work, tmp_path, format):
    for extra in {"lance": ["lance", "pyarrow"], "parquet": ["pyarrow"]}.get(format, []):
        pytest.importorskip(extra)
    target = tmp_path / "exported" / f"x.{format}"
    target.parent.mkdir()
    daskw2v.export(Vectors.open(work), target, format)
    files = [path for path in target.parent.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert PRIVATE.encode() not in path.read_bytes(), path
        assert SECRET.encode() not in path.read_bytes(), path
    if format == "static":
        card = (target / "README.md").read_text("utf-8")
        assert all(f'"{f.name}": true' in card for f in known_fields(Params).values() if f.metadata["is_location"])


@pytest.fixture
def work(vectors, tmp_path):
    """A work directory with two versions."""
    for name in ("v0001-0123456789ab", "v0002-0123456789ab"):
        vectors.metadata["params"]["features"] = f"https://host/{PRIVATE}/{name}?token={SECRET}"
        vectors.save(tmp_path / "work/models" / name)
    daskw2v.Versions.open(tmp_path / "work").publish("v0002-0123456789ab")
    return tmp_path / "work"


def test_model__is_shown_without_secrets(work, tmp_path):
    assert any(SECRET.encode() in path.read_bytes() for path in work.rglob("manifest.json"))
    first, page = work / "models/v0001-0123456789ab", tmp_path / "page.html"
    opened = Vectors.open(work)
    assert SECRET not in repr((opened, opened.metadata)) + opened._repr_html_()
    report(opened, page, other=Vectors.open(first))
    assert PRIVATE in page.read_text("utf-8")
    assert SECRET not in page.read_text("utf-8")
    opened.save(tmp_path / "copy")
    assert not any(SECRET.encode() in path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    for line in (
        ["info", work],
        ["versions", "list", work],
        ["versions", "show", work],
        ["versions", "diff", work, "v0001-0123456789ab"],
        ["compare", first, work],
    ):
        for json in ([], ["--json"]):
            done = invoke(*line, *json)
            assert done.exit_code == 0, done.output
            assert SECRET not in done.output


def _commands(group, words):
    """Yield all commands with the words that name them."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield from (
            _commands(command, [*words, name]) if isinstance(command, click.Group) else [([*words, name], command)]
        )


def _lines(command):
    """Yield the words before each option's value and each argument of a command, and one argument more."""
    needed = ["nowhere"] * sum(isinstance(p, click.Argument) for p in command.params)
    for p in command.params:
        if isinstance(p, click.Option) and not p.is_flag and not p.is_eager:
            yield [*needed, p.opts[0]]
    yield from (needed[:n] for n in range(len(needed) + 1))


def test_command__shows_no_secret_of_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, command in _commands(main, []):
        if words != ["retrain"] and not any(p.required for p in command.params):
            continue  # it would run
        for line in _lines(command):
            done = invoke(*words, *line, URLS[0], "--debug")
            assert isinstance(done.exception, SystemExit), (line, done.output)
            assert SECRET not in done.output, line


def test_error__shows_no_secret_of_a_library():
    for url in URLS:
        errors = [
            DamageError.of(url, "is damaged"),
            *(cls(f"It failed ({url}).", url) for cls in _errors(Daskw2vError)),
        ]
        assert not [error for error in errors if SECRET in _told(error)]
        assert SECRET not in repr(Progress("train", 0, 0, "words", message=f"failed ({url})"))


def _errors(cls):
    return [cls, *(one for below in cls.__subclasses__() for one in _errors(below))]


GIVEN = {
    "work": "work",
    "inputs": "a.txt",
    "vectors": np.zeros((1, 2), np.float32),
    "vocabulary": ["word"],
    "version": "v0001-a",
    "params": Params(),
    "resources": Resources(),
    "store": Store("memory://nowhere"),
}

PLANS = (daskw2v.Plan,)  # `plan` makes them, and checks
ESTIMATORS = daskw2v.Item2Vec, daskw2v.Node2Vec, daskw2v.Word2Vec  # their constructors check nothing


def _calls():
    """Yield public calls, and the names of their arguments that are places, lists of them, or inputs."""
    for made in PUBLIC:
        calls = [made] if callable(made) and made not in (*SETTINGS, *ESTIMATORS, *PLANS) else []
        if inspect.isclass(made):
            names = [name for name, of in vars(made).items() if isinstance(of, FunctionType | classmethod)]
            calls += [getattr(made, name) for name in names if not name.startswith("_")]
        for call in calls:
            for name, of in inspect.signature(call).parameters.items():
                if name in ("inputs", "tracking_uri", "url") or "os.PathLike" in str(of.annotation):
                    several = "Sequence" in str(of.annotation) and name != "inputs"
                    yield pytest.param(call, name, several, id=f"{call.__qualname__}-{name}")


@pytest.mark.parametrize(("call", "name", "several"), list(_calls()))
def test_call__refuses_a_secret_in_a_place(call, name, several, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    parameters = inspect.signature(call).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    others = {of: request.getfixturevalue(of) if of == "client" else GIVEN[of] for of in needed if of != name}
    for url in KINDS:
        with pytest.raises(ParameterError, match="holds a secret") as error:
            call(**{**others, name: [url] if several else url})
        assert SECRET not in _told(error.value)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_estimator__refuses_a_secret_in_a_place_when_it_is_fitted(cls):
    for url in KINDS:
        model = cls(work=url)
        assert SECRET not in repr(model)
        with pytest.raises(ParameterError, match="holds a secret") as error:
            model.fit("a.txt")
        assert SECRET not in _told(error.value)
