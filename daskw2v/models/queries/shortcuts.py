"""Functions of other modules as methods of a model: each method loads its module when it is called.

Queries load none of these modules. Evaluation and reports are layers above models, so no module here imports them.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from daskw2v.models.queries.rows import WordRows
from daskw2v.models.stored.files import open_for_writing
from daskw2v.store.urls import Location, as_url
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Word

if TYPE_CHECKING:
    from daskw2v.models.queries.vectors import Vectors


class Shortcuts(WordRows):
    """Encoding of texts, alignment, evaluation, reports and exports to other tools."""

    def encode(
        self, texts: str | Sequence[str | Sequence[Word]], sif: float | None = None, tokenizer: Any = None
    ) -> Float32Array:
        """Return the mean vector of each text's known words, zeros for a text without any.

        Texts are split by the model's tokenizer, and phrases joined, as the text that it was trained on. Words outside
        the vocabulary count if n-grams or a subword network give them a vector.

        Parameters
        ----------
        texts
            A text, or n texts. A list of words stands for a text that is split already, such as the items of a basket.
        sif
            Weight of a word of probability p: sif / (sif + p), smooth inverse frequency (Arora et al. 2017, who have
            0.001), so that rare words count more; 1 for words outside the vocabulary. By default all weigh the same.
        tokenizer
            Another tokenizer, as `Params.tokenizer`: a name, a pattern, a function, or the name of a tokenizer.json.

        Returns
        -------
        vectors
            Shape (D,) for one text, (n, D) for several, float32.

        Raises
        ------
        ParameterError
            If `texts` is neither a text nor a list of texts and lists of words, or `sif` is not a number above 0.
        InputError
            If the model's tokenizer is a function, which only `tokenizer` passes; or `sif` needs counts of words, and
            there are none.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.encode(["king and queen", "nothing"]).tolist()
        [[2.5, 1.5], [0.0, 0.0]]
        >>> vectors.encode([["apple", "king"]]).tolist()
        [[1.0, 1.0]]
        """
        answer: Float32Array = _call("models.queries.encoding:encode", self, texts, sif, tokenizer)
        return answer

    def align(self, other: "Vectors", most_words: int | None = None) -> "Vectors":
        """Return the model rotated into the space of another one: cosines between words of both are comparable then.

        The rotation brings the words that both know closest together (orthogonal Procrustes). Cosines within the model
        stay. N-grams, features and a subword network are rotated too; the output table is left out.

        Parameters
        ----------
        other
            Model of as many dimensions, such as yesterday's.
        most_words
            Number of words to fit on, the most frequent shared ones. The default is 200 for each dimension.

        Returns
        -------
        Vectors
            The rotated model, in memory.

        Raises
        ------
        ParameterError
            If the models differ in dimensions, or `most_words` is below these.
        VocabularyError
            If they share fewer words than they have dimensions: the rotation would be arbitrary.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> old = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> new = Vectors(["king", "queen", "apple"], [[-1, 3], [-2, 2], [-1, -1]])
        >>> new.align(old)["king"].round(3).tolist()
        [3.0, 1.0]
        """
        answer: Vectors = _call("models.alignment:align_vectors", self, other, most_words)
        return answer

    def evaluate(self, *args: Any, **options: Any) -> Any:
        r"""Return the scores of the model on evaluation sets: `daskw2v.evaluate(vectors, ...)`.

        Parameters
        ----------
        *args, **options
            As `daskw2v.evaluate` takes them after the vectors: `similarity`, `analogy` and so on, lists of URLs.

        Returns
        -------
        Evaluation
            The scores of each set.

        Examples
        --------
        >>> import fsspec
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> with fsspec.open("memory://pairs.txt", "w") as f:
        ...     _ = f.write("king queen 9\nking apple 1\nqueen apple 2\n")
        >>> round(vectors.evaluate(similarity=["memory://pairs.txt"]).similarity["pairs"].spearman, 3)
        1.0
        """
        return _call("evaluation:evaluate", self, *args, **options)

    def report(self, url: Location, **options: Any) -> str:
        """Write a report about the model, one HTML file, as the command `report` does.

        Parameters
        ----------
        url
            File to write, any fsspec URL or local path. An existing file is replaced.
        **options
            As `daskw2v.report` takes them: `evaluation` (of `evaluate`), `other` (a model to compare with), `words`,
            `map_words`, `map_method`, `storage_options`.

        Returns
        -------
        url
            URL of the page.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.report("memory://report.html")
        'memory://report.html'
        """
        return str(_call("reports.page:report", self, url, **options))

    def to_gensim(self) -> Any:
        """Return gensim's KeyedVectors with the words, counts and a copy of the vectors: `daskw2v.to_gensim(vectors)`.

        Raises
        ------
        MissingExtraError
            If gensim is not installed.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.to_gensim().most_similar("king", topn=1)[0][0]
        'queen'
        """
        return _call("models.formats.keyed_vectors:to_gensim", self)

    def save_word2vec_format(
        self,
        fname: Location,
        fvocab: Location | None = None,
        binary: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the vectors in word2vec's format, in order of ids, as `save` does with `format="text"` or `"binary"`.

        Parameters
        ----------
        fname
            File to write, any fsspec URL or local path, compressed if its name ends in .gz; it is replaced.
        fvocab
            File to write lines of a word and its count to.
        binary
            Whether numbers are binary.
        storage_options
            Options for fsspec.

        Raises
        ------
        InputError
            If a word is empty or holds whitespace.
        StoreError
            If a vector is not finite, or no space is left.

        Examples
        --------
        >>> import daskw2v
        >>> vectors = daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]])
        >>> vectors.save_word2vec_format("memory://vectors.bin", binary=True)
        >>> daskw2v.open("memory://vectors.bin")["queen"].tolist()
        [2.0, 2.0]
        """
        _call("models.formats.export:export", self, fname, "binary" if binary else "text", storage_options)
        if fvocab is not None:
            with open_for_writing(as_url(fvocab, "fvocab"), storage_options) as f:
                counts = self.vocabulary.counts.tolist()
                f.writelines(f"{w} {n}\n".encode() for w, n in zip(self.vocabulary, counts, strict=True))

    def push_to_hub(
        self,
        repo_id: str,
        *,
        format: str = "daskw2v",
        private: bool | None = None,
        token: str | None = None,
        commit_message: str = "Word vectors of daskw2v",
    ) -> str:
        """Upload the model to the Hugging Face Hub, with a model card that names no license and nothing private.

        Of how it was trained, its parameters go along, without URLs of tables and the like, and the number of tokens.

        Parameters
        ----------
        repo_id
            Name of the repository, such as `me/vectors`, which is created if it does not exist.
        format
            daskw2v, which `daskw2v.open(repo_id)` opens; or static, for sentence-transformers and model2vec.
        private
            Whether a new repository is private; by default as your organisation has it.
        token
            Token of the Hub; by default that of `hf auth login`.
        commit_message
            Message of the commit.

        Returns
        -------
        url
            URL that `daskw2v.open` takes.

        Raises
        ------
        ParameterError
            If there is no such format.
        MissingExtraError
            If huggingface_hub is not installed.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.push_to_hub("me/vectors")  # doctest: +SKIP
        'hf://me/vectors'
        """
        return str(_call("models.formats.hub:push_to_hub", self, repo_id, format, private, token, commit_message))


def _call(function: str, *args: Any, **options: Any) -> Any:
    """Call the function "module:name" of the package daskw2v."""
    module, _, name = function.partition(":")
    return getattr(import_module(f"daskw2v.{module}"), name)(*args, **options)
