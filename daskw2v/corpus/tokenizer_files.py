"""Settles `Params.tokenizer`: files and objects of Hugging Face's tokenizers are stored in the work directory."""

import json

from daskw2v.config.params import Params
from daskw2v.config.tokenizers import TokenizerJSON, is_tokenizer_file
from daskw2v.corpus.sources import read_chunks
from daskw2v.corpus.stored_tokenizers import is_settled_file, load_tokenizer, read_stored, store_tokenizer
from daskw2v.store.storage import Store

_MAX_BYTES = 1 << 28  # of a file


def with_tokenizer(params: Params, work: Store) -> Params:
    """Return Params whose tokenizer, if it is of Hugging Face, is stored in the work directory, named by its content.

    Parameters
    ----------
    params
        Params with a tokenizer of any kind; one of Hugging Face is a file, an object, or a name in settled Params.
    work
        The work directory, to which a file or object is written.

    Raises
    ------
    InputError
        If the file does not exist, or holds no tokenizer; or Params are settled, and the tokenizer is not stored.
    MissingExtraError
        If the package tokenizers is not installed.
    """
    tokenizer = params.tokenizer
    if is_settled_file(tokenizer):
        read_stored(work, str(tokenizer))
        return params
    if isinstance(tokenizer, TokenizerJSON):
        content, shown = tokenizer.content.encode(), "that was given"
    elif is_tokenizer_file(tokenizer):
        shown = str(tokenizer)
        content = b"".join(read_chunks(shown, work.options, _MAX_BYTES, work.timeout))
    else:
        return params
    load_tokenizer(content, shown)
    # A file and the object that was read from it are the same tokenizer, however the file is indented
    return params.replace(tokenizer=store_tokenizer(work, json.dumps(json.loads(content)).encode()))
