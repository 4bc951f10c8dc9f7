"""A corpus' shards as ids, and what stands around them in the sentences that they cut."""

from functools import lru_cache

import numpy as np

from daskw2v.phrases.bigrams import Ids, Integers
from daskw2v.phrases.join import Words
from daskw2v.shards.layout import Corpus, open_codes, read_places, read_starts, read_words
from daskw2v.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary

KEPT_MAPS = 4  # of the shards read last


class ShardReader:
    """Reads shards.

    Parameters
    ----------
    work
        The work directory.
    corpus, vocabulary
        What was encoded, and a vocabulary of all of its words.
    """

    def __init__(self, work: Store, corpus: Corpus, vocabulary: StoredVocabulary) -> None:
        self._work, self._shards = work, corpus.shards
        self.ids = lru_cache(KEPT_MAPS)(lambda number: vocabulary.read_map(corpus.shards[number].path))

    def codes(self, number: int, start: int = 0, stop: int | None = None) -> Ids:
        """Return the codes start..stop-1 of a shard, all by default."""
        codes: Ids = open_codes(self._work, self._shards[number])[start:stop]
        return codes

    def starts(self, number: int) -> Integers:
        """Return where sentences start in a shard."""
        return read_starts(self._work, self._shards[number])

    def words(self, number: int) -> Words:
        """Return the words of a shard's codes."""
        path, n_types = self._shards[number].path, self._shards[number].n_types
        data, offsets, _ = read_words(self._work, path, 0, n_types)
        return Words(data, offsets, read_places(self._work, path).astype(np.int64))

    def goes_on(self, number: int) -> bool:
        """Tell whether a shard begins inside a sentence of the shard before; there is none after the last."""
        if number == len(self._shards):
            return False
        starts = self.starts(number)
        return not len(starts) or bool(starts[0])

    def before(self, number: int, most: int) -> Ids:
        """Return the ids of the words before a shard in the sentence that goes on in it, at most so many.

        The sentence may have begun any number of shards before.
        """
        parts = [np.empty(0, np.int32)]
        while most and self.goes_on(number):
            number -= 1
            starts, size = self.starts(number), self._shards[number].n_tokens
            begin = int(starts[-1]) if len(starts) else 0
            first = max(begin, size - most)
            parts.append(self.ids(number)[self.codes(number, first)])
            most -= size - first
            if len(starts):
                break
        return np.concatenate(parts[::-1])

    def after(self, number: int) -> tuple[int, bytes] | None:
        """Return id and bytes of the word after a shard in the sentence of its last one, None where that ends there."""
        if not self.goes_on(number + 1):
            return None
        path, code = self._shards[number + 1].path, int(self.codes(number + 1, 0, 1)[0])
        place = int(read_places(self._work, path)[code])
        word, _, _ = read_words(self._work, path, place, place + 1)
        return int(self.ids(number + 1)[code]), word.tobytes()
