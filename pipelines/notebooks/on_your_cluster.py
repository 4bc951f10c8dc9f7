# %% [markdown]
# # On your cluster
#
# A dataframe of a Dask cluster goes in, and a dataframe of the nearest words comes out.
# Nothing of either passes through this process.
#
# The text is that of Python's standard library, as in the [quickstart](quickstart.py).

# %%
import tempfile
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

import daskw2v
from daskw2v.cli.demo import write_text

folder = tempfile.TemporaryDirectory()  # deleted at the end
here = Path(folder.name)
lines = [
    line
    for file in write_text(here / "text")
    for line in file.read_text(encoding="utf-8").splitlines()
]
len(lines)

# %% [markdown]
# ## A cluster and its client
#
# Yours may come from a scheduler's address, Kubernetes, SLURM or a cloud; a client is
# a client. The workers of this one are in this process, so that the lesson runs
# anywhere. Without `processes=False` each has its own; in a script, start them below
# `if __name__ == "__main__":`.

# %%
cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
)
client = Client(cluster)
client

# %% [markdown]
# ## Text that the workers hold
#
# Any Dask dataframe or bag will do: one that reads Parquet, or the result of your own
# cleaning. `persist` computes it once, and the workers keep it.

# %%
raw = pd.DataFrame({"text": lines})
frame = dd.from_pandas(raw, npartitions=4)
frame = frame[frame["text"].str.len() > 20].persist()
frame.npartitions

# %% [markdown]
# ## Train
#
# No client is named. `train` takes, in this order,
#
# 1. `client=`, if it is given,
# 2. the scheduler of `Resources(scheduler="tcp://host:8786")`,
# 3. a local cluster, if `Resources` describe one: `workers=2`, `processes=True`,
# 4. Dask's current client: the one above, or in a task that of its cluster,
# 5. one worker in this process.
#
# Its first line says which. So do `retrain`, `items`, `walks` and the stages that are
# called one by one. Client and workers must share the folder `work`: here a local disk,
# on several machines a shared file system or an object store.

# %%
said: list[str] = []
params = daskw2v.Params(vector_size=50, min_count=5, epochs=8)
vectors = daskw2v.train(
    frame,
    work=here / "work",
    params=params,
    listener=lambda progress: said.append(progress.message),
)
assert said[0].startswith("Dask's current client at")
print(said[0])
vectors

# %% [markdown]
# ## The nearest words of all words
#
# `neighbours` is a Dask dataframe, too: each task asks for some thousand words. Filter
# it, join it, write it with `to_parquet`; the workers do it.

# %%
pairs = vectors.to_dask_neighbours(topn=3)
close = pairs[pairs["cosine"] > 0.6]
close.to_parquet(here / "pairs")
found = pd.read_parquet(here / "pairs")
assert {"word", "rank", "neighbour", "cosine"} == set(found.columns)
found[found["word"] == "file"]

# %% [markdown]
# ## The model in your own tasks
#
# A model travels: to workers of other machines, with `pickle`, `copy` or joblib, before
# and after it was asked something, and gives the same answers there.


# %%
def count_known(texts: pd.Series, model: daskw2v.Vectors) -> pd.Series:
    """Count the words of each text that a model knows."""
    return texts.map(lambda text: sum(word in model for word in text.split()))


assert "file" in vectors
known = frame["text"].map_partitions(count_known, vectors, meta=("known", "int64"))
total = known.sum().compute()
words = [word for line in lines if len(line) > 20 for word in line.split()]
assert total == sum(word in vectors for word in words)
int(total)

# %% [markdown]
# ## Training inside of a task
#
# A task may train, even on a cluster of one thread: it leaves its thread to others
# while it waits. Here each of two tasks trains a model of its own on the workers of
# both. With `Resources(processes=False)` each would train in its worker alone.


# %%
def train_with(seed: int, text: str, work: str) -> int:
    """Train, and return how many words the model has."""
    params = daskw2v.Params(vector_size=20, min_count=5, epochs=1, seed=seed)
    return len(daskw2v.train(text, work=work, params=params, listener=None))


texts, works = [f"{here}/text/*.txt"] * 2, [f"{here}/work-{seed}" for seed in (1, 2)]
sizes = client.gather(client.map(train_with, [1, 2], texts, works))
assert sizes[0] == sizes[1] > 100
sizes

# %% [markdown]
# The client is as it was, and the cluster is yours to close.

# %%
assert Client.current() is client
client.close()
cluster.close()
folder.cleanup()
