"""Reads a file whole, block by block, and tells its sentences."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from daskw2v.corpus.files import Source, TextBlock, batch_blocks
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.pieces import RawText, ReadReport, Tokens
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.tokenizers import make_tokenizer


def read(
    path: str | Path,
    column: str = "text",
    errors: str = "strict",
    tokenizer: str = "whitespace",
    block_bytes: int = 1,
    format: str | None = None,
    **rules: Any,
) -> tuple[list[RawText | Tokens], ReadReport]:
    """Return the pieces of all blocks, and the report."""
    report, pieces = ReadReport(), list[RawText | Tokens]()
    for block in plan_blocks(find_sources(path, format), block_bytes):
        pieces += read_block(
            block,
            column=column,
            errors=errors,
            tokenizer=make_tokenizer(tokenizer),
            storage_options={},
            report=report,
            **rules,
        )
    return pieces, report


def folder_of_one_batch(parent: Path, names: Sequence[str]) -> Path:
    """Make a folder in which small files of these names are one batch; one path in 512 ends a batch."""

    def n_batches(folder: Path) -> int:
        sources = [Source(str(folder / name), 1, "", "text", None) for name in names]
        return len(batch_blocks([TextBlock(source, 0, 1) for source in sources], 1 << 20))

    folder = next(folder for folder in (parent / f"text{n}" for n in range(99)) if n_batches(folder) == 1)
    folder.mkdir()
    return folder


def sentences(pieces: Iterable[RawText | Tokens]) -> list[list[str]]:
    """Return the sentences of pieces as lists of words."""
    found = list[list[str]]()
    for piece in pieces:
        if isinstance(piece, RawText):
            found += [line.split() for line in piece.data.decode().split("\n") if line.split()]
            continue
        bounds = zip(piece.offsets, piece.offsets[1:], strict=False)
        words = [bytes(piece.data[a:b]).decode() for a, b in bounds]
        found += [words[a:b] for a, b in zip(piece.starts, [*piece.starts[1:], len(words)], strict=True)]
    return found
