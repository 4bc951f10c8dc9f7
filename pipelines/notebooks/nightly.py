# %% [markdown]
# # Nightly
#
# Text comes every day. A retraining run reads what is new, trains from the served
# version, checks the candidate, and publishes it. Here are four nights, a flood of spam
# and a rollback.

# %%
import random
import tempfile
from pathlib import Path

import daskw2v
from daskw2v.cli.demo import PARAMS, write_text
from daskw2v.retraining.outcome import Summary

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
lines = [
    line for file in write_text(here / "all") for line in file.read_text().splitlines()
]
random.Random(1).shuffle(lines)


def arrives(day: str, text: list[str]) -> None:
    """Write the text of a day."""
    (here / "text").mkdir(exist_ok=True)
    (here / "text" / f"{day}.txt").write_text("\n".join(text) + "\n")


# %% [markdown]
# ## The first night
#
# There is no model yet, so all text is trained.

# %%
work = f"{here}/work"
params = PARAMS.replace(epochs=5, vector_size=64)


def night() -> Summary:
    """Run what a scheduler runs every night."""
    summary = daskw2v.retrain(f"{here}/text/*.txt", work=work, params=params)
    print(f"{summary.outcome.label} in {summary.seconds:.1f} s: {summary.message}")
    return summary


third = len(lines) // 3
arrives("monday", lines[: 2 * third])
first = night()
assert first.outcome.label == "published"

# %% [markdown]
# ## Nothing new
#
# Cron calls again, and there is no new file. Exit code 3 says so to a scheduler.

# %%
nothing = night()
assert nothing.outcome.label == "nothing_new"
int(nothing.outcome)

# %% [markdown]
# ## A new day
#
# Only the new file is read. Training begins with yesterday's vectors, on the new text
# and a sample of the old. Then the candidate is rotated into the space of the served
# version, so that vectors that a service has stored stay comparable.

# %%
served = daskw2v.Vectors.open(work)
arrives("tuesday", lines[2 * third : -200])
second = night()
assert second.outcome.label == "published"

newer = daskw2v.Vectors.open(work)
words = served.index_to_key[:200]
cosines = [
    float(served.units([i])[0] @ newer.units([newer.key_to_index[w]])[0])
    for i, w in enumerate(words)
]
mean = sum(cosines) / len(cosines)
print(f"{len(newer):,} words, {len(served):,} before; mean cosine {mean:.2f}")
assert mean > 0.8

# %% [markdown]
# A word's row may change from night to night. Its stable id does not.

# %%
for word in ("file", "thread"):
    rows = [version.key_to_index[word] for version in (served, newer)]
    assert served.stable_ids is not None
    assert newer.stable_ids is not None
    ids = [served.stable_ids[rows[0]], newer.stable_ids[rows[1]]]
    print(f"{word}: rows {rows[0]} and {rows[1]}, stable ids {ids[0]} and {ids[1]}")
    assert ids[0] == ids[1]

# %% [markdown]
# ## Spam
#
# Garbage is uploaded. A gate checks the new text: its words are not known. The
# candidate is not published, and readers keep the version of Tuesday. A scheduler can
# raise an alarm on exit code 4.

# %%
draw = random.Random(2)
letters = "abcdefghijklmnopqrstuvwxyz"
spam = [
    " ".join("".join(draw.choices(letters, k=7)) for _ in range(12))
    for _ in range(4000)
]
arrives("wednesday", spam)
stopped = night()
assert stopped.outcome.label == "stopped"
assert stopped.served == second.version

# %% [markdown]
# The file is removed, and the next night is as any other.

# %%
(here / "text" / "wednesday.txt").unlink()
arrives("thursday", lines[-200:])
third_version = night()
assert third_version.outcome.label == "published"

# %% [markdown]
# ## Readers
#
# A `Follower` in a service has a whole version at any moment, and takes the next one
# without a restart. A rollback is one call.

# %%
versions = daskw2v.Versions.open(work)
with daskw2v.Follower(work) as follower:
    before = follower.version
    versions.rollback()
    assert follower.look()  # it does so itself every ten seconds
    print(f"{before}, then {follower.version}")
    assert follower.version == second.version
    print(follower.vectors.most_similar("file", topn=3))

# %%
for version in versions.all():
    print(version.name, "is served" if version.served else "")

# %% [markdown]
# ## As a command
#
# `daskw2v retrain --config nightly.toml` does the same from cron, systemd, Kubernetes,
# Airflow or Prefect. The folder `pipelines/schedules` has a recipe for each.
