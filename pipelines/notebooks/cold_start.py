# %% [markdown]
# # Cold start: items without events
#
# A shop gets new products every day. No user has viewed them, so no session has them,
# and item2vec ([Items](items.py)) has no vectors of them. But the shop knows their
# brand, their category and their price.
#
# `Params(features=)` names a table of what is known of items. An item's vector is then
# composed of a row of its own and of the rows of its features, and sessions train them
# all. A new item has the rows of its features: it is near to others at once.
#
# The shop here is drawn at random: 200 items of four styles. A brand has one style, but
# for a fifth of its items, which are of any. Categories and prices are alike in all
# styles. Users mostly stay in one style.

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import daskw2v

STYLES = ("sporty", "classic", "outdoor", "party")
CATEGORIES = ("shoes", "coat", "bag", "hat", "scarf")
draw = np.random.default_rng(1)
shop = pd.DataFrame(
    {
        "item": [f"item{number}" for number in range(200)],
        "brand": draw.choice([f"{s}{n}" for s in STYLES for n in "123"], 200),
        "category": draw.choice(CATEGORIES, 200),
        "price": np.round(draw.lognormal(4, 0.5, 200), 2),
    }
)
odd = draw.random(200) < 0.2
style_of = dict(zip(shop["item"], shop["brand"].str[:-1], strict=True))
style_of |= {item: STYLES[draw.integers(4)] for item in shop["item"][odd]}
shop.head()

# %% [markdown]
# The last sixty items are new: they are in no session.

# %%
known, new = shop[:140], shop[140:]
of_style = {s: [item for item in known["item"] if style_of[item] == s] for s in STYLES}
rows = []
for user in range(3000):
    mostly = STYLES[draw.integers(4)]
    for step in range(draw.integers(3, 8)):
        strays = draw.random() < 0.1
        items = of_style[STYLES[draw.integers(4)] if strays else mostly]
        item = items[int(len(items) * draw.random() ** 2)]  # the first are popular
        rows.append((f"user{user}", item, 60 * step))
events = pd.DataFrame(rows, columns=["user", "item", "time"])

# %% [markdown]
# ## The table
#
# A row for each item, in Parquet or CSV: the column `item` (or `word`), and others.
# Strings are categories, lists of strings several at once, and numbers with a decimal
# point are numbers: what lies near to each other shares rows. `feature_weights` gives
# columns other weights than 1, or leaves one out.

# %%
folder = tempfile.TemporaryDirectory()
events.to_parquet(Path(folder.name, "events.parquet"))
shop.to_parquet(Path(folder.name, "table.parquet"))

params = daskw2v.Events.params.replace(vector_size=32, epochs=10)
vectors = daskw2v.items(
    f"{folder.name}/events.parquet",
    work=f"{folder.name}/work",
    params=params.replace(features=f"{folder.name}/table.parquet"),
)
assert not set(new["item"]) & set(vectors.index_to_key)
vectors

# %% [markdown]
# ## A new item
#
# `of_features` composes the vector of an item of what the table says of it. A value
# that no known item has is left out.

# %%
features = new.drop(columns="item").to_dict("records")
first = vectors.of_features(features[0])
print(features[0])
near = vectors.most_similar(first, topn=5)
shop.set_index("item").loc[[item for item, cosine in near]]

# %% [markdown]
# ## How often is it right?
#
# Of the five items nearest to each new one, how many are of its style? Training gets no
# styles, only sessions, which follow them. The brand shows the style of four items in
# five, and by chance that of a quarter of the others: 85 % is the most it can reach.


# %%
def share(of: np.ndarray, items: pd.Series) -> float:
    """Return the share of the five nearest that are of an item's style."""
    ids, _ = vectors.nearest(of, topn=6)
    found = []
    for item, row in zip(items, ids, strict=True):
        near = [name for name in map(vectors.vocabulary.word, row) if name != item]
        found += [style_of[name] == style_of[item] for name in near[:5]]
    return float(np.mean(found))


of_new = share(vectors.of_features(features), new["item"])
seen = known["item"][known["item"].isin(vectors.index_to_key)]
of_seen = share(vectors[list(seen)], seen)
chance = np.mean([style_of[a] == style_of[b] for a in new["item"] for b in seen])
print(
    f"new items, by their features alone: {of_new:.0%} of the nearest share the style"
)
print(f"items of sessions: {of_seen:.0%}; chance: {chance:.0%}")
assert of_new > 0.6 > 2 * chance
assert of_seen > 0.9

# %% [markdown]
# The brand does it. A category tells nothing of the style.

# %%
alone = {
    column: share(
        vectors.of_features([{column: one[column]} for one in features]), new["item"]
    )
    for column in ("brand", "category", "price")
}
print(", ".join(f"by {column} alone {found:.0%}" for column, found in alone.items()))
assert alone["brand"] > 0.6 > 0.4 > alone["category"]

# %% [markdown]
# ## On
#
# From a shell: `daskw2v items events.parquet --work work --features table.parquet`.
# When sessions have a new item, the next training gives it a row of its own, whose
# weight grows with its count (`prior_count`). So an item that is not of its brand's
# style is found by what it is met with, like the known ones here. Words have features
# too: the letters that they are made of, `Params(maxn=6)`.
