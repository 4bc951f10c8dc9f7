"""The model card of the Hugging Face Hub: YAML that its search reads, and what the manifest tells of a model.

It names no license, which the Hub lets open: only the owner of the text knows it. It names no place either, as those of
the text, of lists and tables and of the work directory may be private.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from daskw2v.config.params import published
from daskw2v.corpus.stored_tokenizers import is_settled_file
from daskw2v.models.queries.vectors import Vectors
from daskw2v.safe_text import escaped_json

_CARD = """\
---
library_name: {library}
pipeline_tag: feature-extraction
tags: [{tags}]
---

# Word vectors

{words:,} words in {dimensions:,} dimensions{text}. A text is embedded as the mean of the vectors of its words:

```python
{usage}
model.encode(["a text"])
```
"""
_MODEL2VEC = {
    "library": "model2vec",
    "tags": "daskw2v, word2vec, word-embeddings, static-embeddings, sentence-transformers",
    "usage": """from model2vec import StaticModel

model = StaticModel.from_pretrained("path or name of this repository")""",
}
_OWN = {
    "library": "daskw2v",
    "tags": "daskw2v, word2vec, word-embeddings",
    "usage": """import daskw2v

model = daskw2v.open("name of this repository")
model.most_similar("a word of it")""",
}
_OF_WORDS = """
`model.safetensors` has a row for each word and one of zeros for unknown words; `tokenizer.json` has the words and their
row numbers.
"""
_OF_TOKENS = """
Words are tokens of `tokenizer.json`, whose ids are the rows of `model.safetensors`; tokens without a vector have zeros.
"""
_WEIGHTED = """
Rows are scaled by smooth inverse frequency (Arora et al. 2017): a word of probability p counts {a:g} / ({a:g} + p).
"""


def model_card(vectors: Vectors, sif: float | None = None) -> str:
    """Return the text of README.md: sizes, weights, and scores and parameters where the manifest has some."""
    return _card(vectors, _MODEL2VEC, _OF_TOKENS if _has_tokens(vectors) else _OF_WORDS, sif)


def own_card(vectors: Vectors) -> str:
    """Return the text of README.md of a folder that `Vectors.save` wrote."""
    return _card(vectors, _OWN, "")


def public_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest tells that may be public: parameters without URLs, and the number of tokens."""
    tokens = metadata.get("corpus", {}).get("tokens")
    params = metadata.get("params", {})
    public = {"params": {name: value for name, value in published(params).items() if value == params[name]}}
    return {**public, "corpus": {"tokens": tokens}} if isinstance(tokens, int) else public


def _has_tokens(vectors: Vectors) -> bool:
    return is_settled_file(vectors.metadata.get("params", {}).get("tokenizer"))


def _card(vectors: Vectors, library: Mapping[str, str], files: str, sif: float | None = None) -> str:
    metadata = vectors.metadata
    tokens = metadata.get("corpus", {}).get("tokens")
    text = f", trained by daskw2v on {tokens:,} tokens" if isinstance(tokens, int) else ""
    card = _CARD.format(words=len(vectors), dimensions=vectors.vector_size, text=text, **library) + files
    card += "" if sif is None else _WEIGHTED.format(a=sif)
    scores = dict(_scores(metadata))
    return card + _section("Scores", scores) + _section("Parameters", published(metadata.get("params", {})))


def _section(title: str, values: Mapping[str, Any]) -> str:
    """Return values as JSON in an indented block, which no text in them can end."""
    if not values:
        return ""
    lines = escaped_json(json.dumps(values, indent=1)).split("\n")
    return f"\n## {title}\n\n" + "".join(f"    {line}\n" for line in lines)


def _scores(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the last scores while it was trained, and those that a retrained version was published by."""
    for evaluation in metadata.get("metrics", {}).get("evaluations", [])[-1:]:
        yield from evaluation["scores"].items()
    for name, score in metadata.get("retraining", {}).get("scores", {}).items():
        yield name, score["value"]
