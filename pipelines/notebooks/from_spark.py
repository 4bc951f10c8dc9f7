# %% [markdown]
# # From Spark
#
# `pyspark.ml.feature.Word2Vec` learns skip-gram vectors of a column of token lists, and
# gives a document the mean of its words. The estimator `daskw2v.Word2Vec` does both, on
# a Dask cluster:
#
# | Spark | daskw2v |
# |---|---|
# | `vectorSize`, `windowSize`, `minCount` | `vector_size`, `window`, `min_count` |
# | `maxIter`, `stepSize`, `seed` | `epochs`, `alpha`, `seed` |
# | `inputCol` | `column` |
# | `numPartitions` | nothing to set: workers do not change the vectors |
# | `maxSentenceLength` | nothing to set: a sentence is as long as its row |
# | `Word2Vec.fit(df)` | `Word2Vec(...).fit(frame)`, or `train(files, ...)` |
# | `model.getVectors()` | `model.vectors_.to_pandas()`, `to_arrow()`, `to_polars()` |
# | `model.findSynonyms(word, n)` | `model.vectors_.most_similar(word, topn=n)` |
# | `model.transform(df)` | `model.transform(texts)`: an array of means |
# | `model.save`, `Word2VecModel.load` | `vectors.save(url)`, `daskw2v.open(url)` |

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import daskw2v
from daskw2v.cli.demo import write_text

folder = tempfile.TemporaryDirectory()
text = write_text(Path(folder.name))[0].read_text()
frame = pd.DataFrame({"tokens": [line.split() for line in text.splitlines()]})
frame.head(3)

# %% [markdown]
# ## Fit and transform
#
# A frame of pandas here; a Dask DataFrame, or the Parquet files that a Spark job wrote,
# are read by the workers themselves: `train("s3://bucket/tokens/*.parquet",
# column="tokens", ...)`.

# %%
model = daskw2v.Word2Vec(
    vector_size=32, window=5, min_count=5, epochs=3, sample=1e-3, column="tokens"
)
model.fit(frame)
documents = model.transform(frame.tokens[:100])
assert documents.shape == (100, 32)

# %% [markdown]
# A document's vector is the mean of its words' vectors, as Spark's is. Words that the
# model does not know are left out; Spark counts them as zeros.

# %%
vectors = model.vectors_
words = [word for word in frame.tokens[0] if word in vectors]
np.testing.assert_allclose(
    documents[0], vectors[words].mean(axis=0), rtol=1e-4, atol=1e-6
)

# %% [markdown]
# ## Synonyms, and vectors as a table

# %%
print(vectors.most_similar("thread", topn=5))
table = vectors.to_pandas()
assert len(table) == len(vectors)
table.head(3)

# %% [markdown]
# ## Keep the model
#
# `save` writes one folder, or a file by its suffix: `vectors.parquet` is what a Spark
# job reads.

# %%
vectors.save(f"{folder.name}/vectors.parquet")
back = pd.read_parquet(f"{folder.name}/vectors.parquet")
assert len(back) == len(vectors)
back.columns.tolist()

# %% [markdown]
# ## What is different
#
# * Spark averages its partitions' models once an iteration: more partitions, worse
#   vectors. Here replicas are merged many times an epoch, and rotation trains one
#   model: the strategy `auto` takes what is faster and keeps one replica's quality.
# * Spark has hierarchical softmax alone (`objective="sg_hs"`); the default here is
#   negative sampling.
# * A model need not fit the driver: rows stay on workers and in the store.
