"""The tokenizer of Hugging Face that a model's text was split by, stored in the model for export."""

from daskw2v.config.params import Params
from daskw2v.corpus import stored_tokenizers
from daskw2v.models.stored.attempts import create_part
from daskw2v.store.arrays import open_subgroup
from daskw2v.store.storage import Store

_HOME = "tokenizer"


def write_tokenizer(store: Store, work: Store, params: Params) -> None:
    """Copy the tokenizer that settled Params name, if it is of Hugging Face, to a version of a model."""
    if stored_tokenizers.is_settled_file(params.tokenizer):
        write_content(store, stored_tokenizers.read_stored(work, str(params.tokenizer)))


def write_content(store: Store, content: bytes) -> None:
    """Write the JSON of a tokenizer to a model."""
    stored_tokenizers.write_json(create_part(store, _HOME), content)


def read_tokenizer(store: Store, name: str) -> bytes | None:
    """Return the tokenizer.json of a model, which settled Params call so; None if the model was saved without it.

    Raises
    ------
    DamageError
        If it is another.
    """
    if _HOME not in store.children():
        return None
    return stored_tokenizers.read_tokenizer(open_subgroup(store.open_group(), _HOME), name, f"{store.url}/{_HOME}")
