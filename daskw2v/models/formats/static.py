"""Export for sentence-transformers, model2vec and the Hugging Face Hub: a sentence is the mean of its words' vectors.

The exported tokenizer splits text like the model's tokenizer and knows complete words only. A tokenizer of Hugging Face
is written as it is: rows are in order of its ids, and rows of tokens that are no words of the model are zeros. Unknown
words count as zero vectors in sentence-transformers, which changes only the length of the mean; model2vec skips them.
Weights of words scale their rows: sentence-transformers does not read the tensor of weights that model2vec would read.
"""

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from daskw2v.config.tokenizers import TOKENIZER_FILE
from daskw2v.corpus.stored_tokenizers import load_tokenizer
from daskw2v.corpus.tokenizers import steps_of
from daskw2v.errors import InputError
from daskw2v.models.formats.hub import static_model_card
from daskw2v.models.formats.safetensors import write_header, write_numbers
from daskw2v.models.queries.encoding import find_tokenizer, sif_weights
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.files import open_for_writing
from daskw2v.types import Int64Array

_BLANKS = r"[\x00-\x20]+"
_ROWS = 1 << 16  # rows written at once


def write_static(
    vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None, sif: float | None = None
) -> None:
    """Write the five files of a static export into a folder; with `sif`, scale rows by `sif_weights`.

    Raises
    ------
    InputError
        If the model's tokenizer is a function, is missing or has gaps in its ids; if the model has no words; or if
        `sif` needs counts and there are none.
    """
    if not len(vectors):
        raise InputError(f"The model at {vectors.url} has no words.", "Export a model that has words.")
    weights = np.ones(len(vectors), np.float32) if sif is None else sif_weights(vectors, sif)
    name, content = find_tokenizer(vectors, "Export the work directory or one of its versions.")
    if content is None:
        steps = _describe_steps(name)
        ids = np.append(np.arange(len(vectors)), -1)  # the unknown word
    else:
        tokenizer = load_tokenizer(content, TOKENIZER_FILE)
        ids = _words_of_tokens(tokenizer, vectors)
    folder = url.rstrip("/")
    with open_for_writing(f"{folder}/model.safetensors", storage_options) as f:
        write_header(f, {"embeddings": (np.float32, (len(ids), vectors.vector_size))})
        for part in cut(len(ids), _ROWS):
            rows = np.zeros((part.stop - part.start, vectors.vector_size), np.float32)
            known = ids[part] >= 0
            word_ids = ids[part][known]
            rows[known] = vectors.rows(word_ids) * weights[word_ids, None]
            write_numbers(f, rows)
    with open_for_writing(f"{folder}/{TOKENIZER_FILE}", storage_options) as f:
        if content is None:
            _write_words(vectors, steps, f)
        else:
            f.write(tokenizer.to_str().encode())
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": False, "max_length": None}
    texts = {"modules.json": json.dumps([module], indent=1), "config.json": json.dumps(config, indent=1)}
    for name, text in {**texts, "README.md": static_model_card(vectors, sif)}.items():
        with open_for_writing(f"{folder}/{name}", storage_options) as f:
            f.write(text.encode())


def _words_of_tokens(tokenizer: Any, vectors: Vectors) -> Int64Array:
    """Return the id of the word of each token, shape (n,), in order of tokens' ids; -1 for a token that is no word."""
    tokens = tokenizer.get_vocab(with_added_tokens=True)
    ids = np.full(len(tokens), -1, np.int64)
    if sorted(tokens.values()) != list(range(len(tokens))):
        problem = f"The ids of the {len(tokens):,} tokens of {TOKENIZER_FILE} have gaps."
        raise InputError(problem, "Train with a tokenizer whose ids are 0, 1, 2 and so on, as rows are found by them.")
    for token, id_ in tokens.items():
        if (word := vectors.vocabulary.find(token)) is not None:
            ids[id_] = word
    return ids


def _describe_steps(tokenizer: str) -> dict[str, Any]:
    """Return normalizer and pre-tokenizer of a tokenizer, by its name, as JSON; raise InputError for a function."""
    steps = steps_of(tokenizer)
    if steps is None:
        raise InputError(
            f"The model's tokenizer is the function {tokenizer}, which cannot be exported.",
            "Export as safetensors or word2vec's formats, and tokenize texts with the function; or train with a "
            "tokenizer of Hugging Face itself, tokenizer='tokenizer.json', which can be exported.",
        )
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps.normalizers},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": _BLANKS if steps.tokens is None else steps.tokens},
            "behavior": "Removed",
            "invert": steps.tokens is not None,
        },
    }


def _write_words(vectors: Vectors, steps: Mapping[str, Any], f: BinaryIO) -> None:
    """Write a tokenizer.json that knows the words of a model; `steps` are its normalizer and pre-tokenizer."""
    unknown = "[UNK]"
    while unknown in vectors.vocabulary:
        unknown = f"[{unknown}]"
    token = {"id": len(vectors), "content": unknown, "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    absent = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    head = json.dumps({"version": "1.0", **absent, "added_tokens": [{**token, **flags}], **steps})
    model = json.dumps({"type": "WordLevel", "unk_token": unknown})
    f.write(f'{head[:-1]}, "model": {model[:-1]}, "vocab": {{'.encode())
    f.writelines(f"{json.dumps(word)}: {number}, ".encode() for number, word in enumerate(vectors))
    f.write(f"{json.dumps(unknown)}: {len(vectors)}}}}}}}".encode())
