"""Prefixes of the columns: settings, training, and prefixes as models."""

import json

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, train
from daskw2v.errors import ParameterError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke
from tests.support.options import reads_field

TEXT = "the cat sat on the mat and the dog sat on the cat\n" * 200
PARAMS = Params(vector_size=48, prefix_sizes=(16, 32), min_count=1, epochs=2, sample=0, strategy="averaging")


def model(rows):
    return Vectors(Vocabulary.from_words(map(str, range(len(rows))), [1] * len(rows)), rows)


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def test_prefix__is_the_first_columns():
    rows = np.random.default_rng(0).standard_normal((30, 48)).astype(np.float32)
    full = model(rows)
    first = full.prefix(16)
    assert first.vector_size == 16
    assert np.array_equal(first.vectors, rows[:, :16])
    assert first.most_similar("7") == model(rows[:, :16].copy()).most_similar("7")
    assert np.array_equal(full.prefix(48).vectors, rows)


@pytest.mark.parametrize("columns", [0, 49, True, 2.5, "16"])
def test_prefix__refuses_more_columns_than_the_vectors_have(columns):
    with pytest.raises(ParameterError, match=r"columns="):
        model(np.ones((3, 48), np.float32)).prefix(columns)


def test_params__take_sizes_in_any_form_and_keep_numbers():
    assert Params(prefix_sizes=["32", 64]).flat()["prefix_sizes"] == (32, 64)
    assert Params.from_dict(json.loads(json.dumps(PARAMS.as_dict()))) == PARAMS


def test_params__refuse_a_prefix_as_long_as_the_vectors():
    with pytest.raises(ParameterError, match=r"prefix_sizes=\(32, 64\) are not all below vector_size=64\."):
        Params(vector_size=64, prefix_sizes=(32, 64))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "objective", [name for name, value in OBJECTIVES.items() if reads_field(value, "prefix_sizes")]
)
def test_training__is_the_same_however_text_is_cut_into_tasks(text, objective):
    params, small = PARAMS.replace(objective=objective), Resources(processes=False)
    result = [
        train(text, work=text.parent / size.replace(" ", ""), params=params, resources=small.replace(block_size=size))
        for size in ("2 kB", "1 MB")
    ]
    assert np.array_equal(result[0].vectors, result[1].vectors)
    plain = train(text, work=text.parent / "plain", params=params.replace(prefix_sizes=()), resources=small)
    assert not np.array_equal(result[0].vectors, plain.vectors)
    assert result[0].metadata["params"]["prefix_sizes"] == [16, 32]
    first = result[0].prefix(32)
    assert (first.metadata["params"]["vector_size"], first.metadata["params"]["prefix_sizes"]) == (32, [16])


@pytest.mark.parametrize(
    ("params", "device", "reader"),
    [({"strategy": "rotation"}, "cpu", "strategy='rotation'"), ({}, "cuda", "device='cuda'")],
)
def test_training__refuses_settings_without_prefixes(text, params, device, reader):
    chosen = PARAMS.replace(**{**params, "strategy": params.get("strategy", "auto")})
    with pytest.raises(ParameterError, match="changes nothing for " + reader):
        train(text, work=text.parent / "work", params=chosen, resources=Resources(device=device))


def test_params__refuse_prefixes_of_an_objective_that_has_none():
    with pytest.raises(ParameterError, match="changes nothing for objective='context_matrix'"):
        Params(objective="context_matrix", prefix_sizes=(16,))


def test_command__trains_and_exports_prefixes(text):
    work, file = str(text.parent / "work"), text.parent / "first.vec"
    options = ["--vector-size", "48", "--prefix-sizes", "16", "32", "--min-count", "1", "--epochs", "1"]
    for arguments in (["train", str(text), "--work", work, *options], ["export", work, str(file), "--prefix", "16"]):
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
    head, line, *_ = file.read_text().split("\n")
    assert head.split()[1] == "16"
    assert len(line.split()) == 17
    assert Vectors.open(work).metadata["params"]["prefix_sizes"] == [16, 32]


def test_prefix__of_a_model_with_a_network_is_refused():
    alphabet = Alphabet.from_words(["cat"])
    network = Subwords(alphabet, initial_weights(8, len(alphabet), 1))
    vectors = Vectors(Vocabulary.from_words(["cat"], [1]), np.ones((1, 8), np.float32), subwords=network)
    with pytest.raises(ParameterError, match="subword network"):
        vectors.prefix(4)
