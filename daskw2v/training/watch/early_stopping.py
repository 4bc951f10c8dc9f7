"""Early stopping: a run ends when the monitored value no longer improves."""

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError, TrainingError, counted
from daskw2v.evaluation import urls_by_name
from daskw2v.evaluation.reading import read_lines
from daskw2v.shards.layout import digest
from daskw2v.training.watch.callbacks import Callback, TrainingRecord
from daskw2v.training.watch.stopping_settings import HELD_OUT_LOSS, EarlyStopping, get_monitor


class EarlyStopper(Callback):
    """Stops a run after `patience` epochs in a row without an improvement of the best value by more than `min_delta`.

    Parameters
    ----------
    settings
        The monitored value, `patience` and `min_delta`.
    """

    stops = "epoch"

    def __init__(self, settings: EarlyStopping) -> None:
        self._monitor, self._patience, self._delta = str(settings.monitor), settings.patience, settings.min_delta
        self._lower = settings.monitor == HELD_OUT_LOSS
        self._best: float | None = None
        self._n_worse = 0  # epochs in a row without improvement

    def on_epoch(self, record: TrainingRecord) -> str | None:
        """Return a reason to stop after `patience` epochs without improvement, else None.

        Raises
        ------
        TrainingError
            If the monitored value was not measured.
        """
        value = record.held_out_loss if self._lower else record.scores.get(self._monitor.partition("/")[2])
        if value is None:
            raise TrainingError(
                f"monitor={self._monitor!r} was not measured after round {record.round}, or is undefined.",
                "The progress says why. The same command goes on; leave monitor out to train all epochs.",
            )
        gain = 0.0 if self._best is None else (self._best - value) * (1 if self._lower else -1)
        if self._best is None or gain > self._delta:
            self._best, self._n_worse = value, 0
            return None
        self._n_worse += 1
        if self._n_worse < self._patience:
            return None
        epochs = counted(self._n_worse, "epoch")
        return f"{self._monitor} was {value:.4f}, and for {epochs} not better than {self._best:.4f}"


def check_monitor(params: Params, resources: Resources) -> None:
    """Raise a ParameterError if the monitored value will not be measured in a run, or its name is ambiguous."""
    monitor = get_monitor(params)
    if monitor in (None, HELD_OUT_LOSS):
        return
    sets = _name_sets(resources)
    if monitor not in sets:
        raise ParameterError(
            f"monitor={monitor!r} will not be measured.",
            f"Give {HELD_OUT_LOSS}, or one of the evaluation sets of this run: {', '.join(sets) or 'none'}.",
        )
    name = monitor.partition("/")[2]
    if sum(other.partition("/")[2] == name for other in sets) > 1:
        raise ParameterError(f"monitor={monitor!r}: another set is called {name!r}.", "Rename one of the files.")


def monitored_content(params: Params, resources: Resources) -> tuple[str, ...]:
    """Return the one digest of the evaluation set that may stop a run, a part of the run's name; empty if none may."""
    monitor = get_monitor(params)
    if monitor in (None, HELD_OUT_LOSS):
        return ()
    lines = read_lines(_name_sets(resources)[monitor], resources.storage_options)
    return (digest([monitor, *(line for _, line in lines)]),)


def _name_sets(resources: Resources) -> dict[str, str]:
    """Return the URL of each evaluation set, by kind and name, such as similarity/ws353."""
    sets = resources.eval_sets
    return {f"{kind}/{name}": url for kind, urls in sets.items() for name, url in urls_by_name(kind, urls).items()}
