"""Pickles and copies of a model: what they hold, and the name of the model among Dask's keys."""

from copy import deepcopy
from typing import Any, Self

from daskw2v.extras import Extra
from daskw2v.fields import held_fields
from daskw2v.models.stored.tables import PickledAs, StoredRows
from daskw2v.store.storage import Store
from daskw2v.store.urls import is_private
from daskw2v.types import Float32Array

tokens = Extra("dask.base", "events")  # queries load no Dask

_FOLDERS = ("_store", "_version", "_outputs")  # fields that open the model again


class PickledModel:
    """A model whose pickles and copies have the same answers, whatever queries ran before."""

    _rows: Float32Array | StoredRows
    _store: Store | None
    _version: Store | None

    @property
    def pickles_as(self) -> PickledAs:
        """What a pickle made now holds of the vectors: "rows", all of them; or "address", where they are.

        It is the address if queries read rows from a store (`in_memory=False`), as these may not fit into memory: the
        process that loads the pickle must reach that store, and finds the same rows there or gets an error. The pickle
        then holds the storage options, and secrets if these are among them.

        It is also the address if rows are mapped files and `multiprocessing` is starting a process, which then maps
        them too. All other pickles hold the rows and no storage options, and can be loaded anywhere. So do pickles of
        a model in fsspec's `memory://`, which other processes cannot read.
        """
        return self._rows.pickles_as if isinstance(self._rows, StoredRows) else "rows"

    def __getstate__(self) -> dict[str, Any]:
        return {**held_fields(self), **{name: self._sent(getattr(self, name)) for name in _FOLDERS}}

    def _sent(self, store: Store | None) -> Store | None:
        """Return the folder of a version; None if a pickle with rows would hold options, or no process can read it."""
        if store is None or self.pickles_as == "address":
            return store
        return None if store.options or is_private(store.url) else store

    def __copy__(self) -> Self:
        return self._made_of(held_fields(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._made_of(deepcopy(held_fields(self), memo))

    @classmethod
    def _made_of(cls, held: dict[str, Any]) -> Self:
        """Return a model of fields, which are not checked again."""
        made = object.__new__(cls)
        vars(made).update(held)
        return made

    def __dask_tokenize__(self) -> Any:
        """Return the name of the model among Dask's keys: the content of its pickle, without folders that open it."""
        held = {name: value for name, value in held_fields(self).items() if name not in _FOLDERS}
        return tokens.normalize_token((type(self).__qualname__, held))
