"""Reads the shards of a corpus as ids, with the words before and after them in sentences that shards cut."""

from functools import lru_cache

import numpy as np

from daskw2v.phrases.join import WordList
from daskw2v.shards.layout import Corpus, open_codes, read_places, read_starts, read_words
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array
from daskw2v.vocabulary.count import StoredVocabulary

KEPT_MAPS = 4  # maps from codes to ids that are cached


class ShardReader:
    """Reads shards.

    Parameters
    ----------
    work
        The work directory.
    corpus, vocabulary
        The corpus, and a vocabulary of all its words.
    """

    def __init__(self, work: Store, corpus: Corpus, vocabulary: StoredVocabulary) -> None:
        self._work, self._shards, maps = work, corpus.shards, vocabulary.open_maps()

        @lru_cache(KEPT_MAPS)
        def ids(number: int) -> Int32Array:
            path = corpus.shards[number].path
            return maps.read(path, (work / path).open_group())

        self.ids = ids

    def codes(self, number: int, start: int = 0, stop: int | None = None) -> Int32Array:
        """Return the codes start..stop-1 of a shard; all by default."""
        codes: Int32Array = open_codes(self._work, self._shards[number])[start:stop]
        return codes

    def starts(self, number: int) -> Int64Array:
        """Return the starts of a shard's sentences."""
        return read_starts(self._work, self._shards[number])

    def words(self, number: int) -> WordList:
        """Return the words of a shard's codes."""
        path, n_types = self._shards[number].path, self._shards[number].n_types
        data, offsets, _ = read_words(self._work, path, 0, n_types)
        return WordList(data, offsets, read_places(self._work, path).astype(np.int64))

    def goes_on(self, number: int) -> bool:
        """Return whether a shard begins inside a sentence of the shard before it; False after the last shard."""
        if number == len(self._shards):
            return False
        starts = self.starts(number)
        return not len(starts) or bool(starts[0])

    def before(self, number: int, most: int) -> Int32Array:
        """Return the ids of the last `most` words before a shard that are in the same sentence as its first word.

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
        """Return id and bytes of the word after a shard if it is in the same sentence as the last word, else None."""
        if not self.goes_on(number + 1):
            return None
        path, code = self._shards[number + 1].path, int(self.codes(number + 1, 0, 1)[0])
        place = int(read_places(self._work, path)[code])
        word, _, _ = read_words(self._work, path, place, place + 1)
        return int(self.ids(number + 1)[code]), word.tobytes()
