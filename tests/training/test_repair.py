"""Repairs while others are at work: what they have made, or are making, is left to them."""

from pathlib import Path

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, train
from daskw2v.errors import DamageError, StoreError
from daskw2v.progress import silent
from daskw2v.shards.layout import Corpus, open_codes
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.store.lease import hold_run
from daskw2v.training.preparation.repair import _check_blocks, repair, repair_and_retry

PARAMS, RESOURCES = Params(min_count=1), Resources(block_size="1 KiB")


def damage(work, *parts):
    return DamageError.of("/".join([work.url, *parts]), "is damaged")


@pytest.fixture
def work(tmp_path):
    return Store(str(tmp_path / "work"))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one two three\n" * 200)
    return path


def test_repair__keeps_a_block_that_others_have_made_again(client, work, text):
    """Who still reads what they replaced looks for their corpus then."""
    old = build_corpus(text, work, PARAMS, RESOURCES, client)
    whole = open_codes(work, old.shards[1])[:]
    lost = damage(work, old.shards[1].path, "codes", "c", "0")
    attempt = old.shards[1].path.rpartition("/")[0]
    block = attempt.rpartition("/")[0]
    assert repair(work, lost) == attempt
    new = build_corpus(text, work, PARAMS, RESOURCES, client)
    assert repair(work, lost) == attempt
    assert repair(work, damage(work, block, "manifest.json")) == f"{block}/manifest.json"
    np.testing.assert_array_equal(open_codes(work, new.shards[1])[:], whole)
    assert build_corpus(text, work, PARAMS, RESOURCES, client) == new


def test_repair__keeps_a_vocabulary_that_others_have_built_again(client, work, text):
    corpus = build_corpus(text, work, PARAMS, RESOURCES, client)
    old = build_vocabulary(corpus, work, PARAMS, RESOURCES, client)
    lost = damage(work, "vocabulary", old.key, old.build, "chosen", old.chosen, "counts", "c", "0")
    assert repair(work, lost) == f"vocabulary/{old.key}/{old.build}"
    new = build_vocabulary(corpus, work, PARAMS, RESOURCES, client)
    repair(work, lost)
    assert new.load().words == ["one", "three", "two"]
    assert build_vocabulary(corpus, work, PARAMS, RESOURCES, client) == new


@pytest.mark.parametrize(
    "parts", [("corpora", "a.json"), ("shards", "e", "b", "manifest.json"), ("vocabulary", "k", "manifest.json")]
)
def test_repair__keeps_a_manifest_that_others_have_written_again(work, parts):
    *folder, file = parts
    place = work / "/".join(folder)
    place.write_bytes(file, b"half a mani")
    assert repair(work, damage(work, *parts)) == "/".join(parts)
    assert place.read_manifest(file) is None
    place.write_manifest({"a": 1}, file)
    assert repair(work, damage(work, *parts)) == "/".join(parts)
    assert place.read_manifest(file)["a"] == 1


@pytest.mark.parametrize(
    "parts", [("runs", "r", "checkpoints", "000003", "input"), ("runs", "r", "weights"), ("models", "v0001-r", "input")]
)
def test_repair__leaves_a_run_to_who_is_at_work_on_it(work, parts):
    (work / "/".join(parts)).write_bytes("content", b"1")
    with hold_run(work, "r"), pytest.raises(StoreError, match="is at work on the run r in "):
        repair(work, damage(work, *parts))
    assert (work / "/".join(parts)).exists()
    assert repair(work, damage(work, *parts)) in "/".join(parts)
    assert not (work / "/".join(parts)).exists()


def test_corpus__that_was_removed_meanwhile_is_made_again(work):
    with pytest.raises(DamageError, match=r"holds no corpus c\. Build one") as caught:
        Corpus.load(work, "c")
    assert repair(work, caught.value) == "corpora/c.json"


@pytest.mark.parametrize("parts", [("models", "v0001-r", "input"), ("models", "LATEST"), ("elsewhere",)])
def test_repair__removes_nothing_that_no_run_would_make_again(work, parts):
    (work / "models" / "v0001-r").write_manifest({})
    (work / "/".join(parts[:-1])).write_bytes(parts[-1], b"1")
    assert repair(work, damage(work, *parts)) is None
    assert (work / "/".join(parts)).exists()


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_repair__finds_only_the_blocks_that_are_damaged(client, work, text):
    corpus = build_corpus(text, work, PARAMS, RESOURCES, client)
    home = work / "/".join(corpus.shards[0].path.split("/")[:2])
    assert len(home.children()) == len(corpus.shards) == 3
    assert _check_blocks(home, home.children()) == []
    chunk = Path(work.url) / corpus.shards[1].path / "codes" / "c" / "0"
    flip(chunk)
    assert [damage.url for damage in _check_blocks(home, home.children())] == [str(chunk)]


@pytest.mark.slow
@pytest.mark.timeout(900)  # 160 s on a loaded machine
def test_train__makes_hundreds_of_damaged_blocks_again_in_one_call(client, tmp_path):
    """Blocks are checked together: each call goes through the text a few times, not once for each block."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"one two three word{n % 50}\n" for n in range(16_000)))
    settings = {"params": PARAMS.replace(vector_size=4, epochs=1), "resources": RESOURCES, "client": client}
    undisturbed = train(text, work=tmp_path / "whole", **settings)
    build_corpus(text, Store(str(tmp_path / "work")), *list(settings.values())[:2], client)
    blocks = sorted((tmp_path / "work" / "shards").glob("*/*"))
    assert len(blocks) > 300
    for number, block in enumerate(blocks):
        (chunk,), (metadata,) = block.glob("*/0/codes/c/0"), block.glob("*/0/codes/zarr.json")
        [flip, Path.unlink, lambda path: path.write_bytes(b"")][number % 3]((chunk, metadata)[number % 2])
    repairs = []
    vectors = train(
        text, work=tmp_path / "work", **settings, listener=lambda p: repairs.append(p) if p.stage == "repair" else None
    )
    np.testing.assert_array_equal(vectors.vectors, undisturbed.vectors)
    assert len(repairs) == 1
    assert f" and {len(blocks) - 1} more are made again." in repairs[0].message


def test_mending__gives_up_on_what_is_damaged_time_and_again(work):
    calls = []

    def make(versions):
        calls.append(versions)
        raise damage(work, "vocabulary", "key", f"build{len(calls)}", "counts")

    with pytest.raises(DamageError, match="is damaged"):
        repair_and_retry(work, silent, make, client=None)
    assert len(calls) == 6


def test_mending__goes_on_while_other_results_are_repaired(work):
    calls = []

    def make(versions):
        calls.append(versions)
        if len(calls) < 50:
            raise damage(work, "vocabulary", f"key{len(calls)}", "build", "counts")
        return "made"

    assert repair_and_retry(work, silent, make, client=None) == "made"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("spoil", [Path.unlink, flip])
def test_train__trains_again_what_a_damaged_version_held(client, text, tmp_path, spoil):
    """Under the next number; the damaged version is named, and not touched."""
    params = PARAMS.replace(vector_size=4, sample=0)  # few words, each frequent: others would be sampled away
    settings = {"work": tmp_path / "work", "params": params, "resources": RESOURCES.replace(threads=1)}
    first = train(text, **settings, client=client)
    whole, said = first.vectors.copy(), []
    spoil(Path(first.url) / "input" / "c" / "0" / "0")
    again = train(text, **settings, client=client, listener=lambda progress: said.append(progress.message))
    assert again.url == first.url.replace("v0001", "v0002")
    np.testing.assert_array_equal(again.vectors, whole)
    assert any(f"{Path(first.url).name} is passed over." in message for message in said)
    assert Path(first.url).exists()
    assert Vectors.open(tmp_path / "work").url == again.url
