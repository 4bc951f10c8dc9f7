"""The Hugging Face Hub: models are uploaded with a card, and without entries that may be private.

A model card has YAML that the Hub's search reads, and what the manifest says of a model. It names no license, which the
Hub allows: only the owner of the text knows it. It names no URL or folder either: they may be private.
"""

import json
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from daskw2v.config.params import published
from daskw2v.corpus.stored_tokenizers import is_settled_file
from daskw2v.errors import ParameterError
from daskw2v.extras import needed
from daskw2v.models.queries.vectors import Vectors
from daskw2v.safe_text import escaped_json

_FORMATS = "daskw2v", "static"
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
_DASKW2V = {
    "library": "daskw2v",
    "tags": "daskw2v, word2vec, word-embeddings",
    "usage": """import daskw2v

model = daskw2v.open("name of this repository")
model.most_similar("a word of it")""",
}
_FILES_OF_WORDS = """
`model.safetensors` has a row for each word and one of zeros for unknown words; `tokenizer.json` has the words and their
row numbers.
"""
_FILES_OF_TOKENS = """
Words are tokens of `tokenizer.json`, whose ids are the rows of `model.safetensors`; tokens without a vector have zeros.
"""
_WEIGHTED = """
Rows are scaled by smooth inverse frequency (Arora et al. 2017): a word of probability p counts {a:g} / ({a:g} + p).
"""


def push_to_hub(
    vectors: Vectors, repo_id: str, format: str, private: bool | None, token: str | None, commit_message: str
) -> str:
    """Upload a model and return its URL; arguments and errors are as in `Vectors.push_to_hub`."""
    if format not in _FORMATS:
        raise ParameterError(f"format={format!r} is unknown.", f"Give one of {', '.join(_FORMATS)}.")
    hub = needed("huggingface_hub", "hub").HfApi(token=token)
    with TemporaryDirectory() as parent:
        folder = Path(parent, "model")
        if format == "static":
            vectors.save(folder, format)
        else:
            public = copy(vectors)
            vars(public)["metadata"] = public_metadata(vectors.metadata)
            public.save(folder)
            (folder / "README.md").write_text(_make_card(public, _DASKW2V), encoding="utf-8")
        repo = hub.create_repo(repo_id, private=private, exist_ok=True).repo_id
        hub.upload_folder(repo_id=repo, folder_path=folder, commit_message=commit_message)
    return f"hf://{repo}"


def static_model_card(vectors: Vectors, sif: float | None = None) -> str:
    """Return the text of README.md of a static export: sizes, weights, and scores and parameters of the manifest."""
    has_tokens = is_settled_file(vectors.metadata.get("params", {}).get("tokenizer"))
    return _make_card(vectors, _MODEL2VEC, _FILES_OF_TOKENS if has_tokens else _FILES_OF_WORDS, sif)


def public_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a manifest that may be public: parameters without URLs, and the number of tokens."""
    tokens = metadata.get("corpus", {}).get("tokens")
    params = metadata.get("params", {})
    public = {"params": {name: value for name, value in published(params).items() if value == params[name]}}
    return {**public, "corpus": {"tokens": tokens}} if isinstance(tokens, int) else public


def _make_card(vectors: Vectors, library: Mapping[str, str], files: str = "", sif: float | None = None) -> str:
    """Return the text of a model card for a library; `files` is the text about the files of the repository."""
    metadata = vectors.metadata
    tokens = metadata.get("corpus", {}).get("tokens")
    text = f", trained by daskw2v on {tokens:,} tokens" if isinstance(tokens, int) else ""
    card = _CARD.format(words=len(vectors), dimensions=vectors.vector_size, text=text, **library) + files
    card += "" if sif is None else _WEIGHTED.format(a=sif)
    scores = dict(_list_scores(metadata))
    return card + _make_section("Scores", scores) + _make_section("Parameters", published(metadata.get("params", {})))


def _make_section(title: str, values: Mapping[str, Any]) -> str:
    """Return a section of a model card, "" without values: JSON in an indented block, which no value can end."""
    if not values:
        return ""
    lines = escaped_json(json.dumps(values, indent=1)).split("\n")
    return f"\n## {title}\n\n" + "".join(f"    {line}\n" for line in lines)


def _list_scores(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of scores in a manifest: the last ones of training, and the gates of a retraining."""
    for evaluation in metadata.get("metrics", {}).get("evaluations", [])[-1:]:
        yield from evaluation["scores"].items()
    for name, score in metadata.get("retraining", {}).get("scores", {}).items():
        yield name, score["value"]
