"""What no run uses any more is deleted, and nothing that one still uses."""

from daskw2v.corpus.pieces import ReadReport
from daskw2v.retraining.clearing import clear_unused, note_uses
from daskw2v.shards.layout import Corpus, Shard
from daskw2v.stages import Store

PATHS = {
    "old": ["shards/e/only-old/a/0", "shards/e/shared/a/0", "phrases/old/join/0/a"],
    "new": ["shards/e/shared/a/0", "shards/e/only-new/a/0", "phrases/new/join/0/a"],
}


def test_clear_unused__deletes_what_only_forgotten_runs_used(tmp_path):
    work = Store(str(tmp_path))
    records, corpora = work / "retraining", {}
    (work / "shards" / "e" / "of another command").write_bytes("manifest.json", b"{}")
    for run, paths in PATHS.items():
        for path in paths:
            (work / path).write_bytes("zarr.json", b"{}")
        corpora[run] = Corpus(run, tuple(Shard(path, 1, 1, 1) for path in paths), (), ReadReport())
        corpora[run].save(work)
        (work / "vocabulary" / run).write_bytes("manifest.json", b"{}")
        note_uses(records, run, [corpora[run]], run)
    clear_unused(work, records, {"new"})
    assert (work / "shards" / "e").children() == ["of another command", "only-new", "shared"]
    assert (work / "phrases").children() == (work / "vocabulary").children() == ["new"]
    assert (work / "corpora").children() == [f"{corpora['new'].name}.json"]
    assert records.children() == ["new.uses.json"]
