"""The Hugging Face Hub: models are uploaded with a card, and without what may be private."""

from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory

from daskw2v.errors import ParameterError
from daskw2v.extras import needed
from daskw2v.models.formats.card import own_card, public_metadata
from daskw2v.models.formats.export import export
from daskw2v.models.queries.vectors import Vectors

_FORMATS = "daskw2v", "static"


def push_to_hub(
    vectors: Vectors, repo_id: str, format: str, private: bool | None, token: str | None, commit_message: str
) -> str:
    """Upload a model; all is as in `Vectors.push_to_hub`."""
    if format not in _FORMATS:
        raise ParameterError(f"format={format!r} is unknown.", f"Give one of {', '.join(_FORMATS)}.")
    hub = needed("huggingface_hub", "hub").HfApi(token=token)
    with TemporaryDirectory() as parent:
        folder = Path(parent, "model")
        if format == "static":
            export(vectors, folder, format)
        else:
            public = copy(vectors)
            vars(public)["metadata"] = public_metadata(vectors.metadata)
            public.save(folder)
            (folder / "README.md").write_text(own_card(public), encoding="utf-8")
        repo = hub.create_repo(repo_id, private=private, exist_ok=True).repo_id
        hub.upload_folder(repo_id=repo, folder_path=folder, commit_message=commit_message)
    return f"hf://{repo}"
