"""`TextParams`: what changes how text is read, which words are kept, and which are joined."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskw2v.config.filters import FILTERS
from daskw2v.config.settings import DELIMITER, SEPARATOR, TEXT, URL, Settings, integer, number, one_of, setting
from daskw2v.config.tokenizers import TOKENIZER


@dataclass(frozen=True, kw_only=True)
class TextParams(Settings):
    """The fields of `Params` from text to words."""

    _staged = _is_part = True

    tokenizer: str | Callable[[list[str]], list[list[str]]] | Any = setting(
        "whitespace", "how a line becomes tokens", TOKENIZER, stage="read", honoured_by=("input",), heading="Input"
    )
    format: str | None = setting(
        None,
        "format of the input; told by the names of files when not given",
        TEXT,
        stage="read",
        honoured_by=("input",),
        optional=True,
    )
    column: str = setting(
        "text", "column (of tables) or key (of JSONL) that holds text or tokens; doc.body is the field body of doc",
        TEXT, stage="read", honoured_by=("input", "format"),
    )  # fmt: skip
    weight: str | None = setting(
        None,
        "column or key of integers: how often the text of a row counts; 0 leaves it out",
        TEXT,
        stage="read",
        honoured_by=("input", "format"),
        optional=True,
    )
    delimiter: str | None = setting(
        None,
        "character between the fields of CSV; a comma, or a tab in TSV, when not given",
        SEPARATOR,
        stage="read",
        honoured_by=("input", "format"),
        optional=True,
    )
    filters: tuple[Any, ...] = setting(
        (),
        "which files are read, by columns that their folders name, as in day=2026-11-01: conditions such as "
        "day>=2026-11-01, which all hold",
        FILTERS,
        stage="read",
        honoured_by=("input",),
        told=True,
    )
    errors: str = setting(
        "replace",
        "what becomes of invalid input: strict stops; replace puts U+FFFD for invalid UTF-8, skip drops the line; both "
        "drop lines that are no readable JSONL and rows of CSV of another number of fields, and count what they change",
        one_of("strict", "replace", "skip"),
        stage="read",
        honoured_by=("input",),
    )
    min_count: int = setting(
        5, "fewest occurrences of a word that is kept", integer(1), stage="vocabulary", heading="Vocabulary"
    )
    max_final_vocab: int | None = setting(
        None, "most words to keep, by exact count; min_count still holds", integer(1), stage="vocabulary", optional=True
    )
    vocabulary: str | None = setting(
        None,
        "URL of a list of words, one a line, alone or with its count in the list, which is left out: only these are "
        "kept, whatever their count",
        URL,
        stage="vocabulary",
        optional=True,
    )
    phrases: int = setting(
        0,
        "passes that join frequent bigrams: one makes phrases of two words, two of up to four",
        integer(0, 8),
        stage="phrases",
        honoured_by=("input",),
    )
    phrase_min_count: int = setting(
        5,
        "fewest occurrences of a phrase; the default score is lowered by as many",
        integer(1),
        stage="phrases",
        honoured_by=("input",),
        needs=("phrases",),
    )
    phrase_threshold: float | None = setting(
        None,
        "score above which a bigram is a phrase; that of phrase_scoring when not given",
        number(-1),
        stage="phrases",
        honoured_by=("input",),
        needs=("phrases",),
        optional=True,
    )
    phrase_scoring: str = setting(
        "default",
        "score of a bigram: default, of Mikolov et al.; npmi, normalized pointwise mutual information, of -1 to 1",
        one_of("default", "npmi"),
        stage="phrases",
        honoured_by=("input",),
        needs=("phrases",),
    )
    phrase_delimiter: str = setting(
        "_",
        "text between the words of a phrase",
        DELIMITER,
        stage="phrases",
        honoured_by=("input",),
        needs=("phrases",),
    )
