# %% [markdown]
# # Quickstart
#
# Train word vectors, ask them, measure them, and come back later.
#
# The text is the one that every Python has: docstrings and comments of its standard
# library. It has half a million words. That is little, and enough to see how things
# work.

# %%
import tempfile
import time
from pathlib import Path

import daskw2v
from daskw2v.cli.demo import write_text

folder = tempfile.TemporaryDirectory()  # deleted at the end
here = Path(folder.name)
files = write_text(here / "text")
[file.name for file in files]

# %% [markdown]
# ## Train
#
# `inputs` are files, patterns, folders or URLs. Everything that the run writes is in
# the folder `work`. `Params` are the settings that change the vectors. Their names are
# gensim's.
#
# Small text needs many epochs.

# %%
params = daskw2v.Params(
    tokenizer="whitespace", vector_size=100, min_count=5, epochs=8, sample=1e-3
)
work = f"{here}/work"
vectors = daskw2v.train(f"{here}/text/*.txt", work=work, params=params)
vectors

# %% [markdown]
# No cluster was named, so one worker in this process did all the work. With
# `resources=daskw2v.Resources(scheduler="tcp://host:8786")` the same call uses the
# workers of a Dask cluster.
#
# ## Ask
#
# Words that occur in the same contexts have similar vectors.

# %%
near = vectors.most_similar("file", topn=5)
assert "files" in [word for word, cosine in near]
near

# %% [markdown]
# Look at several words at once. `to_pandas` and `to_arrow` make tables of all vectors.

# %%
for word in ("thread", "integer", "socket", "first"):
    print(f"{word:8}", *(other for other, cosine in vectors.most_similar(word, topn=5)))

# %%
odd = vectors.doesnt_match(["list", "tuple", "dict", "socket"])
assert odd == "socket"
odd

# %% [markdown]
# ## Measure
#
# An evaluation set of pairs is a file of two words and a score that people gave. This
# one is made up. `daskw2v datasets` lists published ones and downloads them.

# %%
pairs = here / "pairs.tsv"
pairs.write_text(
    "file\tfiles\t9\nfile\tdirectory\t7\nfile\tsocket\t3\nfile\ttrue\t1\n"
    "list\ttuple\t8\nlist\tdict\t7\nlist\tthread\t2\nlist\tdirectory\t1\n"
)
evaluation = daskw2v.evaluate(vectors, similarity=[pairs])
spearman = evaluation.similarity["pairs"].spearman
assert spearman is not None
assert spearman > 0.5
round(spearman, 2)

# %% [markdown]
# A report is one HTML page: what was read, how training went, scores, and a map of the
# words. It needs no network.

# %%
page = daskw2v.report(vectors, here / "report.html", evaluation=evaluation)
print(f"{Path(page).stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# ## Come back
#
# A second call with the same text and Params trains nothing: the model is there. So a
# run that was interrupted is resumed by the same command.

# %%
start = time.perf_counter()
again = daskw2v.train(f"{here}/text/*.txt", work=work, params=params)
print(f"{time.perf_counter() - start:.2f} s, {len(again):,} words")
assert again.url == vectors.url

# %% [markdown]
# Another program opens the folder. This takes neither compiler nor cluster.

# %%
opened = daskw2v.Vectors.open(work)
assert opened.most_similar("file", topn=5) == near
opened.vector_size, opened.metadata["metrics"]["words"]

# %% [markdown]
# ## On
#
# * You know gensim: [From gensim](from_gensim.py).
# * You have a Dask cluster: [On your cluster](on_your_cluster.py).
# * Your text is in an object store: [S3 and Kubernetes](s3_and_kubernetes.py).
# * Text comes every day: [Nightly](nightly.py).
