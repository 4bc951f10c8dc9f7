from daskw2v.corpus.pieces import ReadReport


class FakeVectors:
    """Two words whose neighbours tell how they were asked."""

    opened = None
    vector_size = 3
    url = "w/models/v1"
    metadata = {  # noqa: RUF012
        "params": {"window": 4},
        "corpus": {"tokens": 4321, "report": ReadReport().as_dict()},
        "metrics": {"words_per_second": 12345, "seconds": 2.0, "loss": 1.5, "history": [{"words": 1}] * 9},
    }

    @classmethod
    def open(cls, url, storage_options=None, in_memory=None):
        cls.opened = (url, storage_options, in_memory)
        return cls()

    def __len__(self):
        return 2

    def __contains__(self, word):
        return word == "file"

    def most_similar(self, positive, negative=(), topn=10):
        return [("+".join(positive) + "".join(f"-{w}" for w in negative), 0.5)] * topn

    def analogy(self, a, b, c, topn=10):
        return [(f"{a}:{b}={c}:", 0.25)] * topn
