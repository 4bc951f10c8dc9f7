"""Small files are read in batches, but a retraining run still knows which text is new."""

import numpy as np
import pytest

from daskw2v import Params, Resources
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.phrases.build import build_phrases
from daskw2v.retraining.gates import measure_novelty
from daskw2v.sampling.excerpt import find_block_ranges, make_excerpt
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.reading import folder_of_one_batch

PARAMS = Params(min_count=1, phrases=1, phrase_min_count=1, phrase_threshold=1e-9)
SEPARATE, TOGETHER = "4 KiB", "64 MiB"  # files of less than 4 KiB and of more than a 64th of that


@pytest.fixture
def files(tmp_path):
    folder, rng = folder_of_one_batch(tmp_path, [f"{number}.txt" for number in range(5)]), np.random.default_rng(0)
    for number in range(5):
        lines = (" ".join(f"w{w}" for w in rng.zipf(1.6, 8) % 40) for _ in range(30 + number))
        (folder / f"{number}.txt").write_text("\n".join([*lines, f"only{number}"]) + "\n")
    return folder


def new_text(files, work, block_size, client, numbers, params=PARAMS):
    """Return the corpus of some files, cut out of that of all of them, and the vocabulary."""
    store, resources = Store(str(work)), Resources(block_size=block_size)
    corpus = build_corpus(str(files / "*.txt"), store, params, resources, client, None)
    corpus = build_phrases(corpus, store, params, resources, client, None)
    new = find_sources([files / f"{number}.txt" for number in numbers])
    keys = [block.key for block in plan_blocks(new, resources.block_bytes)]
    ranges = find_block_ranges(corpus, store, keys)
    return (
        len(corpus.shards),
        ranges,
        make_excerpt(corpus, ranges),
        build_vocabulary(corpus, store, params, resources, client),
    )


@pytest.mark.slow
@pytest.mark.parametrize("phrases", [0, 1])
def test_new_text__of_batches_has_the_positions_of_separate_files(files, tmp_path, client, phrases):
    params = PARAMS.replace(phrases=1) if phrases else Params(min_count=1)
    for numbers in ([1], [0, 3, 4]):
        separate, together = (
            new_text(files, tmp_path / size, size, client, numbers, params) for size in (SEPARATE, TOGETHER)
        )
        assert (separate[0], together[0]) == (5, 1)
        assert separate[1] == together[1] != []


@pytest.mark.slow
def test_novelty__of_batches_is_that_of_separate_files(files, tmp_path, client):
    known = Vocabulary.from_words([f"w{w}" for w in range(20)], range(20, 0, -1))
    actual = []
    for size in (SEPARATE, TOGETHER):
        *_, text, stored = new_text(files, tmp_path / size, size, client, [1, 3])
        actual.append(measure_novelty(client, text, stored, stored.load(), known))
    assert actual[0] == actual[1]
    assert 0 < actual[0].unknown < 1
