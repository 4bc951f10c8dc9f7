# %% [markdown]
# # From fastText
#
# fastText's `skipgram` and `cbow` with character n-grams, its `.bin` and `.ftz` files,
# and its queries. A dozen names differ:
#
# | fastText | daskw2v |
# |---|---|
# | `-input` | the first argument of `train`: files, folders, patterns, URLs |
# | `skipgram`, `cbow` | `objective="sgns"`, `"cbow_ns"` |
# | `-loss hs` | `objective="sg_hs"`, `"cbow_hs"` |
# | `-dim`, `-ws`, `-epoch`, `-neg` | `vector_size`, `window`, `epochs`, `negative` |
# | `-lr`, `-t`, `-minCount` | `alpha`, `sample`, `min_count` |
# | `-minn`, `-maxn`, `-bucket` | `minn`, `maxn`, `bucket`; without `maxn`, no n-grams |
# | `-pretrainedVectors` | `base_vectors` |
# | `-thread` | `threads`, which does not change the vectors |
# | `quantize` | `export(vectors, "model.ftz")` |
# | `get_nearest_neighbors`, `get_analogies` | `most_similar`, `analogy` |
# | `get_word_vector` | `vectors["word"]` |
# | `get_sentence_vector` | `vectors.encode(texts)` |

# %%
import tempfile
from pathlib import Path

import numpy as np

import daskw2v
from daskw2v.cli.demo import write_text

folder = tempfile.TemporaryDirectory()
files = [str(path) for path in write_text(Path(folder.name))]

# %% [markdown]
# ## Train
#
# As `fasttext skipgram -input ... -dim 32 -minn 3 -maxn 6 -bucket 50000 -epoch 3`. The
# n-grams are a group of settings: `features=NGrams(...)` is another way to write
# `minn`, `maxn` and `bucket`.

# %%
vectors = daskw2v.train(
    files,
    work=f"{folder.name}/work",
    vector_size=32,
    sample=1e-3,
    epochs=3,
    features=daskw2v.NGrams(minn=3, maxn=6, bucket=50_000),
)
assert vectors.metadata["params"]["maxn"] == 6
len(vectors)

# %% [markdown]
# ## Words that the text does not have
#
# Their vectors are made of their n-grams, as fastText's are. A word without any known
# n-gram is an error that names it.

# %%
word = "multithreadings"
assert word not in vectors.index_to_key
print(vectors.most_similar(word, topn=5))
assert vectors.similarity(word, "threads") > vectors.similarity(word, "integer")

# %% [markdown]
# ## fastText's own files, both ways
#
# A `.bin` holds words, n-grams and settings: fastText, gensim and daskw2v read it. An
# `.ftz` is the same made small.

# %%
path = f"{folder.name}/model.bin"
daskw2v.export(vectors, path, format="fasttext")
loaded = daskw2v.import_vectors(path, "fasttext")
for each in ("thread", word):
    np.testing.assert_allclose(loaded[each], vectors[each], rtol=1e-5, atol=1e-6)

small = f"{folder.name}/model.ftz"
daskw2v.export(vectors, small)
sizes = [Path(name).stat().st_size for name in (path, small)]
print(f"{sizes[0] / 1e6:.1f} MB, as .ftz {sizes[1] / 1e6:.1f} MB")
assert sizes[1] < sizes[0] / 4

# %% [markdown]
# ## What is different
#
# * A run writes to a folder or an object store, and goes on from there after a fault.
# * Several machines train one model: `Resources(scheduler="tcp://...")`.
# * `supervised` has no counterpart: train a classifier on `vectors.encode(texts)`.
# * Text is cut at white space, as by fastText; `</s>` is no word.
