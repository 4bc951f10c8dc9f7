# %% [markdown]
# # Items: vectors of viewed products
#
# A shop's log has a user, a product and a time for each view. The products that a user
# views in one session belong together, so a session is a sentence and its items are the
# words. That is item2vec (Barkan and Koenigstein, 2016).
#
# The log here is drawn at random: forty products of four departments, and users who
# mostly stay in one.

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import daskw2v

DEPARTMENTS = ("kitchen", "garden", "sport", "music")
draw = np.random.default_rng(1)
rows = []
for user in range(1500):
    for visit in range(2):
        mostly = DEPARTMENTS[draw.integers(4)]
        start = visit * 86_400 + draw.integers(50_000)
        for step in range(draw.integers(3, 8)):
            strays = draw.random() < 0.1
            where = DEPARTMENTS[draw.integers(4)] if strays else mostly
            item = (
                f"{where}-{int(10 * draw.random() ** 2)}"  # the first ones are popular
            )
            rows.append((f"user{user}", item, start + 60 * step))
events = pd.DataFrame(rows, columns=["customer", "product", "at"])
events.head()

# %% [markdown]
# ## Sessions and training
#
# Events are Parquet or CSV files, in any number. `Sessions` names the columns, and says
# when a session ends: here after half an hour without an event.
#
# In a session all items are contexts of all others, whatever their order. So the window
# is long and does not shrink: `Events.params` has this, and is the default.

# %%
folder = tempfile.TemporaryDirectory()
Path(folder.name, "events").mkdir()
for day, part in events.groupby(events["at"] // 86_400):
    part.to_parquet(f"{folder.name}/events/day{day}.parquet")

sessions = daskw2v.Sessions(user="customer", item="product", time="at", gap="1800")
params = daskw2v.Events.params.replace(vector_size=32, epochs=10)
vectors = daskw2v.items(
    f"{folder.name}/events/*.parquet",
    work=f"{folder.name}/work",
    sessions=sessions,
    params=params,
)
assert (params.window, params.shrink_windows) == (100, False)
vectors.most_similar("garden-0", topn=5)

# %% [markdown]
# ## Did it find the departments?
#
# Training had no departments.


# %%
def department(item: str) -> str:
    return item.partition("-")[0]


same = [
    department(item) == department(near)
    for item in vectors.index_to_key
    for near, cosine in vectors.most_similar(item, topn=5)
]
print(f"{np.mean(same):.0%} of the five nearest are of the same department; chance 23%")
assert np.mean(same) > 0.9

# %% [markdown]
# A recommendation for a basket: what is near all of it?

# %%
basket = ["kitchen-0", "kitchen-3"]
offers = vectors.most_similar(positive=basket, topn=3)
assert {department(item) for item, cosine in offers} == {"kitchen"}
offers

# %% [markdown]
# ## On
#
# From a shell: `daskw2v items events/*.parquet --work work --user customer --item
# product --time at --gap '30 min'`. New events every night: [Nightly](nightly.py) shows
# `retrain`, which takes `Events` as it takes text.
