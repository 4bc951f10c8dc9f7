"""Phrases in plain Python: the reference of the kernels, also used to join a few sentences."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

Bigram = tuple[str, str]


def count_bigrams(sentences: Iterable[Sequence[str]]) -> tuple[Counter[str], Counter[Bigram]]:
    """Return the count of each word, and the count of each pair of adjacent words of a sentence."""
    words, bigrams = Counter[str](), Counter[Bigram]()
    for sentence in sentences:
        words.update(sentence)
        bigrams.update(pairwise(sentence))
    return words, bigrams


def join_phrases(sentence: Sequence[str], phrases: Container[Bigram], delimiter: str) -> list[str]:
    """Return the words of a sentence, with `delimiter` between the words of bigrams that are phrases.

    Phrases are joined from the left; a word belongs to one phrase at most.
    """
    joined: list[str] = []
    i = 0
    while i < len(sentence):
        word, i = sentence[i], i + 1
        if i < len(sentence) and (word, sentence[i]) in phrases:
            word, i = f"{word}{delimiter}{sentence[i]}", i + 1
        joined.append(word)
    return joined
