"""An option that is not read is refused: every field of Params and Resources with every kind of input.

New fields, formats, commands and classes of derived text are found by themselves.
"""

import json
import re
from dataclasses import fields, replace
from itertools import chain

import dask.bag
import numpy as np
import pytest

from daskw2v import EdgeList, Events, Graph, Params, Resources, Vectors, retrain, train
from daskw2v.cli import main
from daskw2v.collections.kinds import FILES, KINDS, Derived, check_texts, list_kinds
from daskw2v.collections.parts import find_texts
from daskw2v.config.choice import find_readers, find_unread_fields, get_choices, is_axis, known_settings
from daskw2v.config.settings import get_default
from daskw2v.corpus.formats import FORMATS, check_formats, read_block
from daskw2v.corpus.pieces import ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.errors import Daskw2vError, ParameterError
from daskw2v.objectives.registry import OBJECTIVES, check_options
from daskw2v.progress import silent
from daskw2v.stages import Store, build_corpus
from daskw2v.training.devices import DEVICES, check_device
from daskw2v.training.strategies import STRATEGIES, check_strategy
from tests.support.command_line import invoke
from tests.support.reading import sentences

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
orc, pq = (pytest.importorskip(f"pyarrow.{name}") for name in ("orc", "parquet"))

ROWS = [{"text": "Ab ab", "body": "Cd", "n": 2}, {"text": "ab, ab", "body": "Ef", "n": 1}]
FRAME = pd.DataFrame(ROWS)
DERIVED = {kind.__name__: kind for kind in Derived.__subclasses__() if kind.__module__.startswith("daskw2v.")}
IN_MEMORY = {
    "frame": lambda: FRAME,
    "arrow": lambda: pa.table(FRAME),
    "series": lambda: FRAME.text,
    "records": lambda: ROWS,
    "texts": lambda: (row["text"] for row in ROWS),
    "bag": lambda: dask.bag.from_sequence(ROWS, npartitions=1),
}
CLASSES = {name: cls for cls in (Params, Resources) for name in cls.names()}
KNOWN = {**known_settings(Params), **known_settings(Resources)}
FIELDS = {name: known.field for name, known in KNOWN.items()}
TRIED = (True, False, 7, 0.25, 1, "x", ("x",), (16,), ("x=2",), {"x": 1}, "64 MiB", "1 MiB", (("day", "==", "x"),))
COMMANDS = {"train": None, "estimate": None, "retrain": None, "items": Events, "walks": Graph}


def other(name):
    """Return a value of a field that is not its default."""
    f = FIELDS[name]
    if is_axis(f):
        return next(choice for choice in get_choices(f) if choice != get_default(f))
    wanted = (v for v in (*f.metadata["choices"], *TRIED) if f.metadata["check"](v) and v != get_default(f))
    return next(wanted)


def settings_with(name, value):
    """Return Params and Resources, one of which has a value in one field."""
    given = {KNOWN[name].owner.axis: KNOWN[name].choices[0]} if KNOWN[name].choices else {}
    given |= {key: other(key) for key in KNOWN[name].needs[:1]}
    given |= {"market_negative": 1} if name == "markets" else {}
    given |= {"markets": "x"} if name == "market_negative" else {}
    given |= {"alpha": 10} if name == "min_alpha" else {}
    given |= {"n_partitions": value} if name == "n_groups" else {}
    given |= {name: value}
    params, resources = ({n: v for n, v in given.items() if CLASSES[n] is cls} for cls in (Params, Resources))
    return Params(**params), Resources(**resources)


def write(folder, format):
    """Write the rows as a file of a format, in a folder of a day."""
    path = folder / "day=monday" / f"rows{(*FORMATS[format].suffixes, '.txt')[0]}"
    path.parent.mkdir(exist_ok=True)
    table = pa.table(FRAME)
    if format == "text":
        path.write_text("".join(f"{row['text']}\n" for row in ROWS))
    elif format == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    elif format in ("csv", "tsv"):
        FRAME.to_csv(path, sep={"csv": ",", "tsv": "\t"}[format], index=False)
    elif format == "arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write(table)
    else:
        {"parquet": pq, "orc": orc}[format].write_table(table, path)
    return path.parent.parent


def what_is_read(inputs, work, client=None, **given):
    """Return the sentences that inputs are read as, or the class of the error."""
    params = Params(**given)
    try:
        check_texts(inputs, params, Resources())
        sources = find_texts(inputs, Store(str(work)), params, Resources(), lambda: client, silent)
        pieces = chain.from_iterable(
            read_block(
                block,
                column=params.column,
                errors=params.errors,
                tokenizer=make_tokenizer(params.tokenizer),
                storage_options={},
                report=ReadReport(),
                also=params.as_dict(),
            )
            for block in plan_blocks(sources, 1 << 20)
        )
        return sentences(pieces)
    except ParameterError as error:
        return error.problem
    except Daskw2vError as error:
        return type(error).__name__


READ = {  # values of the fields from files to tokens, each of which changes what these rows are read as
    "tokenizer": "lower",
    "format": "csv",
    "column": "body",
    "weight": "n",
    "delimiter": ";",
    "filters": (("day", "==", "tuesday"),),
}
DAMAGE = {"errors", "max_bad_blocks"}  # which only what is damaged shows


def test_fields_of_reading__are_all_tried():
    assert {name for name, f in FIELDS.items() if f.metadata["stage"] == "read"} == READ.keys() | DAMAGE


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("format", FORMATS)
def test_option__changes_what_is_read_of_files_or_is_refused(format, name, tmp_path):
    inputs, value = str(write(tmp_path, format)), "text" if (name, format) == ("format", "csv") else READ[name]
    plain, found = (what_is_read(inputs, tmp_path / "work", **given) for given in ({}, {name: value}))
    assert isinstance(plain, list)
    assert found != plain
    refused = format not in find_readers(FIELDS[name], "format", FORMATS)
    assert (isinstance(found, str) and found.startswith(f"{name}={value!r} changes nothing for format=")) == refused


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("kind", IN_MEMORY)
def test_option__changes_what_is_read_of_memory_or_is_refused(kind, name, client, tmp_path):
    plain, found = (what_is_read(IN_MEMORY[kind](), tmp_path, client, **given) for given in ({}, {name: READ[name]}))
    assert isinstance(plain, list)
    assert found != plain
    if "collections" not in find_readers(FIELDS[name], "input", KINDS):
        assert re.match(rf"{name}=.* changes nothing for an input of type \w+; it is for files", found)


@pytest.mark.parametrize("kind", [*KINDS, *DERIVED])
def test_every_option__is_read_with_an_input_or_refused_by_name(kind):
    inputs = {"files": "a.txt", "collections": FRAME}.get(kind) if kind in KINDS else DERIVED[kind]("a.parquet")
    shown = {"collections": "an input of type DataFrame"}.get(kind, kind)
    kinds = list_kinds(DERIVED.get(kind))
    for name, f in FIELDS.items():
        params, resources = settings_with(name, READ[name] if name in ("column", "weight") else other(name))
        if kind in find_readers(f, "input", kinds):
            check_texts(inputs, params, resources)
            continue
        with pytest.raises(ParameterError) as caught:
            check_texts(inputs, params, resources)
        unread = next(n for n in (*KNOWN[name].needs, name) if kind not in find_readers(FIELDS[n], "input", kinds))
        assert re.match(rf"{unread}=.* changes nothing for {shown}; it is for ", caught.value.problem)
        assert caught.value.remedy == f"Leave {unread} out, or choose another input."


@pytest.mark.parametrize("kind", DERIVED)
def test_derived_text__reads_nothing_of_how_text_is_read(kind):
    unread = find_unread_fields(Params, "input", DERIVED[kind])
    assert {name for name, f in FIELDS.items() if f.metadata["stage"] in ("read", "phrases")} == {*unread}


@pytest.mark.parametrize("call", [train, retrain, build_corpus])
@pytest.mark.parametrize("kind", DERIVED)
def test_calls__refuse_before_anything_is_read(call, kind, client, tmp_path):
    params, place = Params(tokenizer="lower"), {"work": tmp_path / "work"}
    if call is build_corpus:
        place = {"store": Store(str(tmp_path / "work")), "resources": Resources()}
    with pytest.raises(ParameterError, match=rf"tokenizer='lower' changes nothing for {kind}; it is for files, coll"):
        call(DERIVED[kind](str(tmp_path / "nothing.parquet")), params=params, client=client, listener=None, **place)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_command__offers_the_options_that_are_read(command):
    """Options of other settings may have the name of one that is not."""
    kind, own = COMMANDS[command], {f.name for f in fields(EdgeList)} if command == "walks" else set()
    unread = {name for cls in (Params, Resources) for name in find_unread_fields(cls, "input", kind or KINDS[FILES])}
    options = main.get_command(None, command).params
    hidden = {option.name for option in options if getattr(option, "hidden", False)}
    assert hidden == unread - own
    assert FIELDS.keys() <= {option.name for option in options}
    assert not any(option.envvar or option.readers for option in options if option.name in hidden)


@pytest.mark.parametrize("command", ["items", "walks"])
def test_command__tells_who_reads_an_option_that_it_does_not(command, tmp_path, monkeypatch):
    monkeypatch.setenv("DASKW2V_ERRORS", "strict")  # of other commands
    result = invoke(command, "a.parquet", "--work", tmp_path / "work", "--tokenizer", "lower")
    assert result.exit_code == 2
    kind = COMMANDS[command].__name__
    assert f"tokenizer='lower' changes nothing for {kind}; it is for files, collections." in result.stderr


def test_files_of_several_formats__may_have_options_of_one(tmp_path):
    for format in ("text", "jsonl"):
        write(tmp_path, format)
    mixed = find_sources([str(tmp_path / "day=monday" / name) for name in ("rows.txt", "rows.jsonl")])
    check_formats((source.format for source in mixed), Params(column="body"))
    with pytest.raises(ParameterError, match="delimiter=';' changes nothing for format='text' or format='jsonl'"):
        check_formats((source.format for source in mixed), Params(delimiter=";"))


def test_named_format__refuses_what_it_does_not_read_before_files_are_looked_for(tmp_path):
    with pytest.raises(ParameterError, match="delimiter=';' changes nothing for format='jsonl'; it is for csv, tsv"):
        train(str(tmp_path / "nothing"), work=tmp_path / "work", format="jsonl", delimiter=";")
    assert not (tmp_path / "work").exists()


def test_model__is_no_text():
    with pytest.raises(ParameterError, match="Vectors> is no URL or path"):
        check_texts(Vectors(["a"], np.ones((1, 2))), Params(), Resources())


TRAINING = {  # by axis: its values, and what refuses settings that the chosen one does not read
    "objective": (OBJECTIVES, lambda params, _: check_options(params)),
    "strategy": (STRATEGIES, check_strategy),
    "device": (DEVICES, check_device),
}


def refusal(check, params, resources):
    """Return why settings are refused; an empty text where they are not."""
    try:
        check(params, resources)
    except ParameterError as error:
        return error.problem
    return ""


@pytest.mark.parametrize(
    ("axis", "name"),
    [(axis, name) for name, f in FIELDS.items() for axis in f.metadata["honoured_by"] if axis in TRAINING],
)
def test_plug_in__is_refused_what_it_does_not_honour(axis, name, monkeypatch):
    """Of frozen, hot and composed rows, prefixes and all others its `honours` names those that it reads."""
    registry, check = TRAINING[axis]
    like = next(value for value in registry.values() if name in value.honours)
    silent, (params, resources) = replace(like, name="theirs", honours=()), settings_with(name, other(name))
    its_settings = type("Theirs", (like.settings,), {"name": "theirs"})
    monkeypatch.setitem(get_choices(CLASSES[axis].__dataclass_fields__[axis]), "theirs", its_settings)
    silent = replace(silent, settings=its_settings)
    if CLASSES[axis] is Params:
        params = params.replace(**{axis: "theirs"})
    else:
        resources = resources.replace(**{axis: "theirs"})
    value = (params if CLASSES[name] is Params else resources).flat()[name]
    refused = f"{name}={value!r} changes nothing for {axis}='theirs'; it is for "
    monkeypatch.setitem(registry, "theirs", silent)
    assert refusal(check, params, resources).startswith(refused)
    monkeypatch.setitem(registry, "theirs", replace(silent, honours=(name,)))
    assert not refusal(check, params, resources).startswith(refused)
