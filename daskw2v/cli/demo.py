"""The corpus of the demo: docstrings and comments of Python's standard library, which every machine has."""

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from daskw2v.config.params import Params
from daskw2v.errors import InputError

# For a small corpus: many epochs, and less subsampling of frequent words than for billions of words.
PARAMS = Params(tokenizer="whitespace", vector_size=100, min_count=5, epochs=15, sample=1e-3)
WORDS = ("file", "string", "thread", "integer", "error", "module", "list", "true", "first", "socket")

_SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_SENTENCE_WORDS = 4  # shorter strings are mostly names
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_COMMENT = re.compile(r"^[ \t]*#+(.*)\n", re.MULTILINE)
_BREAK = re.compile(r"\n\s*\n|(?<=[.:;!?])\s+")


def _strings(source: bytes) -> Iterator[str]:
    """Yield the values of all str constants of Python source, such as docstrings; none if it cannot be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in literals
        try:
            tree = ast.parse(source)
        except SyntaxError:  # templates and samples of other Pythons that some systems ship
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _comments(source: bytes) -> Iterator[str]:
    """Yield each run of lines that begin with # as one text, without the #, but with the line breaks between lines.

    Lines inside strings count as well. A last line without a line break is skipped. Invalid UTF-8 is replaced.
    """
    for run in re.findall(r"(?:^[ \t]*#.*\n)+", source.decode("utf-8", "replace"), re.MULTILINE):
        yield "\n".join(_COMMENT.findall(run))


def normalize(texts: Iterable[str]) -> Iterator[str]:
    """Yield each distinct sentence of four or more words, in lower case: words of a-z, separated by spaces."""
    written: set[str] = set()
    for text in texts:
        for sentence in _BREAK.split(text.lower()):
            words = _WORD.findall(sentence)
            line = " ".join(words)
            if len(words) >= _SENTENCE_WORDS and line not in written:
                written.add(line)
                yield line


def write_text(folder: Path, library: Path | None = None) -> list[Path]:
    """Write the prose of the standard library to two text files, one sentence on each line; return their paths.

    Parameters
    ----------
    folder
        Folder to write to. Files that are up to date are not written again, so that nothing is retrained.
    library
        Folder of the Python sources; the interpreter's standard library by default.

    Raises
    ------
    InputError
        If the library has no Python sources.
    """
    library = library or Path(sysconfig.get_paths()["stdlib"])
    files = sorted(library.rglob("*.py"))
    sources = [file.read_bytes() for file in files if _SKIPPED.isdisjoint(file.relative_to(library).parts)]
    if not sources:
        raise InputError(
            f"{library} holds no Python source to learn from.",
            "Use a Python that ships its library as .py files, or train on your own text: daskw2v train.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, extract in (("strings.txt", _strings), ("comments.txt", _comments)):
        path = folder / name
        lines = normalize(text for source in sources for text in extract(source))
        content = "".join(f"{line}\n" for line in lines).encode("ascii")
        if not (path.exists() and path.read_bytes() == content):
            path.write_bytes(content)
        written.append(path)
    return written
