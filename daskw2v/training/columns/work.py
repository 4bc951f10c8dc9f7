"""The work of strategy `columns`: parts of the words are trained on columns of the word-context matrix."""

from collections.abc import Iterator

from daskw2v.objectives.base import MOMENTS
from daskw2v.objectives.registry import settle_params
from daskw2v.sampling.context_matrix import BAND, COLUMNS
from daskw2v.sampling.settings import SampledContexts
from daskw2v.training.columns.settings import Columns
from daskw2v.training.columns.subwords import network_bytes, task_bytes, update_bytes
from daskw2v.training.loop.work import INT, LONG, Moment, Work


class ColumnsWork(Work):
    """The work of a run: trained rows with their moments, fixed rows, columns of the matrix."""

    def train(self) -> Iterator[Moment]:
        """Yield the moments of training, and of building the matrix."""
        workers, n_words, follows = self.workers, self.text.vocabulary, self.objective.has_network
        n, parts = workers.n, workers.n * workers.devices
        arrays = 1 + MOMENTS[settle_params(self.params).optimizer or ""]  # rows, and their moments
        size = SampledContexts.of(self.params).context_size
        gathered = min(size, Columns.of(self.params).columns_per_step)
        width = min(COLUMNS, size)
        panel = INT * width * n_words / n
        # One task of a single part trains both tables; others train one table while the other one is fixed
        trained, fixed = max(self.padded_bytes.values()), max(self.padded_bytes.values())
        if parts == 1 and not follows:
            trained, fixed = self.copies, 0
        worker = {
            "rows": self.tables + (arrays - 1) * self.tables / n,
            "fixed rows": (self.tasks if follows else workers.devices) * fixed,
            "trained rows": arrays * trained / n,
            "rows taken out": arrays * max(self.table_bytes.values()) / n,
            # Two panels are kept while a third one is read; a step's columns are a copy
            "columns": min(3, -(-size // COLUMNS)) * panel + panel * gathered / width,
            **self.prepared,
        }
        if follows:
            size = self.params.vector_size
            worker["network"] = update_bytes(size) + (0 if self.device.resource else self.tasks * task_bytes(size))
        device = {
            "tables": fixed + arrays * trained / parts,
            **self.prepared,
            "columns": INT * gathered * n_words / parts,
            "network": network_bytes(self.params.vector_size) if follows else 0,
        }
        yield Moment(worker, device)
        yield Moment({"contexts of a band": workers.threads * min(BAND, n_words * size) * (LONG + 2 * INT)})
