"""Character n-grams of words, numbered as fastText numbers them (Bojanowski et al. 2017, section 3.2).

An n-gram is a range of the characters of a word, to which marks of its begin and end are added. Its bucket is a hash
modulo the number of buckets: FNV-1a of 32 bits over the n-gram's UTF-8, with signed bytes.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from daskw2v.types import Int32Array, Int64Array

_BEGIN, _END = "<", ">"
END_OF_SENTENCE = "</s>"  # a word of fastText's that has no n-grams
_OFFSET, _PRIME = 2166136261, 16777619


def hash_word(word: str, minn: int, maxn: int) -> Iterator[int]:
    """Yield the hash of each n-gram of a word.

    Parameters
    ----------
    word
        The word, without boundary marks.
    minn, maxn
        Least and greatest number of characters of an n-gram, with marks. A mark alone is no n-gram.
    """
    characters = [character.encode("utf-8", "surrogatepass") for character in (_BEGIN, *word, _END)]
    for start in range(len(characters)):
        hash = _OFFSET
        for n, character in enumerate(characters[start : start + maxn], 1):
            for byte in character:
                hash = ((hash ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * _PRIME) & 0xFFFFFFFF
            if n >= minn and not (n == 1 and start in (0, len(characters) - 1)):
                yield hash


def hash_words(words: Sequence[str], minn: int, maxn: int, bucket: int) -> tuple[Int64Array, Int32Array]:
    """Return the buckets of the n-grams of n words; `ngram_kernel` is faster for many words.

    Parameters
    ----------
    words
        The words.
    minn, maxn, bucket
        As in Params.

    Returns
    -------
    offsets, buckets
        Bounds of each word's buckets, shape (n + 1,) int64, and the buckets, int32.
    """
    hashes = [[] if word == END_OF_SENTENCE else [*hash_word(word, minn, maxn)] for word in words]
    offsets = np.cumsum([0, *map(len, hashes)], dtype=np.int64)
    return offsets, np.array([hash % bucket for of_word in hashes for hash in of_word], np.int32)
