"""Models to report on."""

import numpy as np

from daskw2v.config.params import Params
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.registry import settle_params
from daskw2v.vocabulary.vocabulary import Vocabulary

# What a page, a script or a terminal might stumble over.
HARMFUL = [
    "<script>alert(1)</script>",
    "</script><script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 1">',
    'it\'s & "quoted" <b>bold</b>',
    "{{ 7 * 7 }}{% raw %}",
    "$$x^2$$",
    "@word{safe}$index",
    "שלום",
    "\u202egnp.exe",
    "👩‍👩‍👧",
    "漢字",
    "a" * 3000,
    "\x1b[31mred\x00\x07",
    "line\u2028break",
    "__proto__",
]


def model(words, vector_size=12, seed=1, metadata=None, url=None):
    rows = np.random.default_rng(seed).standard_normal((len(words), vector_size), np.float32)
    counts = range(1000 + len(words), 1000, -1)
    return Vectors(Vocabulary.from_words(words, counts), rows, metadata or {}, url)


def manifest(**params):
    history = [
        {
            "round": i,
            "progress": 100_000 * (i + 1),
            "words": 90_000,
            "pairs": 200_000,
            "loss": 500_000.0 - 1000 * i,
            "alpha": 0.03 - 0.001 * i,
            "seconds": 0.5,
        }
        for i in range(20)
    ]
    return {
        "params": settle_params(Params(**{"strategy": "averaging", "n_replicas": 1, **params})).as_dict(),
        "resources": {"device": "cpu", "threads": 2},
        "corpus": {
            "identity": "feedbeef",
            "tokens": 400_000,
            "report": {
                "bytes_read": 2_400_000,
                "lines": 5000,
                "replaced": 3,
                "skipped": 0,
                "cut": 0,
                "first_offence": "line 7 of a.txt",
            },
        },
        "vocabulary": {
            "words": 200,
            "total": 390_000,
            "raw_words": 400_000,
            "raw_types": 1234,
            "missing": 0,
            "missing_words": [],
        },
        "metrics": {
            "words": 1_800_000,
            "seconds": 10.0,
            "words_per_second": 180_000,
            "pairs": 4_000_000,
            "loss": 2.4525,
            "history": history,
            "stages": [{"stage": "encode", "seconds": 61.0}, {"stage": "train", "seconds": 10.5}],
            "workers": [
                {
                    "worker": "tcp://10.0.0.1:7",
                    "threads": 4,
                    "words_per_second": 98_765,
                    "seconds": 9.0,
                    "peak_memory": 1_230_000_000,
                    "sent": 45_600_000,
                },
                {"worker": "tcp://10.0.0.2:7", "words_per_second": 81_235, "seconds": 8.0},
            ],
            "evaluations": [
                {"progress": 1_000_000, "scores": {"ws353": 0.25, "<b>$$set$$": None}},
                {"progress": 2_000_000, "scores": {"ws353": 0.5, "<b>$$set$$": 0.125}},
            ],
        },
        "daskw2v": "9.8.7",
        "created": "2026-11-21T17:07:29+00:00",
    }
