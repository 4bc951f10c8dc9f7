"""Attributes of other libraries' models: the error for one names the attribute of daskw2v."""

from abc import ABCMeta
from typing import TYPE_CHECKING, Any

_SIMILAR = "most_similar(word, topn)"
_WORDS, _NUMBERS, _WORD = "index_to_key", "key_to_index", "get_vector(word)"
# Names of fastText, Spark, scikit-learn and earlier releases of gensim, and the attribute of `Vectors` instead
INSTEAD = {
    "get_nearest_neighbors": _SIMILAR, "findSynonyms": _SIMILAR, "findSynonymsArray": _SIMILAR,
    "get_analogies": "most_similar(positive=[a, c], negative=[b])",
    "get_word_vector": _WORD, "word_vec": _WORD, "get_sentence_vector": "encode(text)", "transform": "encode(texts)",
    "words": _WORDS, "get_words": _WORDS, "index2word": _WORDS, "index2entity": _WORDS, "vocab": _NUMBERS,
    "get_word_id": "get_index(word, -1)", "get_dimension": "vector_size",
    "to_numpy": "vectors",
    "getVectors": "to_pandas()", "get_input_matrix": "vectors", "syn0": "vectors", "get_output_matrix": "output_rows()",
    "save_model": "save(url)", "quantize": "save('model.ftz')",
    "evaluate_word_pairs": "evaluate(similarity=[url])", "evaluate_word_analogies": "evaluate(analogy=[url])",
}  # fmt: skip


class _NamesRemedies(ABCMeta):
    """The class of `Answers`: a missing attribute of a class raises an error with the text of `_remedy`."""

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(cls, name: str) -> Any:
            if remedy := cls._remedy(name):
                raise AttributeError(f"{cls.__name__} has no attribute {name!r}. {remedy}", name=name, obj=cls)
            return type.__getattribute__(cls, name)  # raises Python's own error


class Answers(metaclass=_NamesRemedies):
    """A base class: an error for a missing attribute names the attribute of daskw2v to use instead."""

    @classmethod
    def _remedy(cls, name: str) -> str:
        """Return the remedy for a name that is no attribute; an empty text if there is none."""
        return ""

    def _missing_attribute(self, name: str) -> Any:
        """Raise the error for a missing attribute, or read a property again, so that it raises its error again."""
        if remedy := self._remedy(name):
            title = type(self).__name__
            raise AttributeError(f"{title!r} object has no attribute {name!r}. {remedy}", name=name, obj=self)
        return object.__getattribute__(self, name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return self._missing_attribute(name)
