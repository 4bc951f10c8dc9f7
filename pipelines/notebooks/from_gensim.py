# %% [markdown]
# # From gensim, side by side
#
# The same text, half of that of the other pages, trained by gensim and by daskw2v. [The
# table](../docs/from_gensim.md) lists all names.

# %%
import tempfile
import time
from pathlib import Path
from typing import Any

import gensim
import numpy as np

import daskw2v
from daskw2v.cli.demo import write_text

folder = tempfile.TemporaryDirectory()
files = write_text(Path(folder.name))
sentences = [
    line.split() for file in files for line in file.read_text().splitlines()[::2]
]
print(f"{len(sentences):,} sentences, {sum(map(len, sentences)):,} words")

# %% [markdown]
# ## Train
#
# gensim takes a list of lists of words. So does daskw2v. It writes them to the work
# directory first, as a run must find its text again when it is resumed.

# %%
settings: dict[str, Any] = {
    "vector_size": 64,
    "window": 5,
    "min_count": 5,
    "sample": 1e-3,
    "epochs": 6,
}

start = time.perf_counter()
theirs = gensim.models.Word2Vec(sentences, sg=1, seed=1, workers=1, **settings).wv
print(f"gensim {time.perf_counter() - start:.1f} s")

start = time.perf_counter()
params = daskw2v.Params(objective="sgns", **settings)
one_thread = daskw2v.Resources(threads=1)
ours = daskw2v.train(
    sentences, work=f"{folder.name}/work", params=params, resources=one_thread
)
print(f"daskw2v {time.perf_counter() - start:.1f} s")

# %% [markdown]
# `sg=1, hs=0` is `objective="sgns"`; the other three are `cbow_ns`, `sg_hs` and
# `cbow_hs`. The other settings have the same names. `workers` is
# `Resources(threads=...)`: settings that do not change the vectors are kept apart.
#
# Both have found the same words, counted alike, in the same order but for words of
# equal counts.

# %%
assert sorted(ours.index_to_key) == sorted(theirs.index_to_key)
assert all(
    count == theirs.get_vecattr(word, "count")
    for word, count in zip(ours.index_to_key, ours.vocabulary.counts, strict=True)
)
len(ours)

# %% [markdown]
# ## Ask
#
# Queries have the same names and give the same types.

# %%
for word in ("file", "thread", "integer"):
    print(word)
    print("  gensim ", *(other for other, _ in theirs.most_similar(word, topn=6)))
    print("  daskw2v", *(other for other, _ in ours.most_similar(word, topn=6)))

# %%
print(ours.similarity("list", "tuple"), theirs.similarity("list", "tuple"))
print(
    ours.doesnt_match(["list", "tuple", "socket"]),
    theirs.doesnt_match(["list", "tuple", "socket"]),
)
print(ours.rank("file", "files"), theirs.rank("file", "files"))

# %% [markdown]
# Two runs of one program with two seeds do not agree on all neighbours either. How far
# do these two agree?

# %%
words = ours.index_to_key[50:550]
shared = [
    len(
        {w for w, _ in ours.most_similar(word)}
        & {w for w, _ in theirs.most_similar(word)}
    )
    for word in words
]
print(f"{np.mean(shared):.1f} of the ten nearest words are the same")
assert np.mean(shared) > 2.5

# %% [markdown]
# ## Take models along
#
# `from_gensim` takes KeyedVectors, `to_gensim` gives them. Files of word2vec go both
# ways, too.

# %%
mine = daskw2v.from_gensim(theirs)
assert mine.most_similar("file")[0][0] == theirs.most_similar("file")[0][0]

back = daskw2v.to_gensim(ours)
assert np.array_equal(back["file"], ours["file"])
back

# %%
path = f"{folder.name}/vectors.bin"
daskw2v.export(ours, path)
loaded = gensim.models.KeyedVectors.load_word2vec_format(path, binary=True)
assert np.array_equal(loaded["file"], ours["file"])

path = f"{folder.name}/theirs.bin"
theirs.save_word2vec_format(path, binary=True)
imported = daskw2v.import_word2vec(path)
assert np.array_equal(imported["file"], theirs["file"])
imported

# %% [markdown]
# ## What is different
#
# * An unknown word is an error everywhere. gensim's `n_similarity` and `doesnt_match`
#   pass over it.
# * Vectors do not change once they are trained. To go on with new text, see
#   [Nightly](nightly.py).
# * A run writes to a folder or an object store, and is resumed from there.
