"""Calls in a thread of their own."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def in_background(function: Callable[..., T], *args: Any) -> "Future[T]":
    """Call a function in a thread of its own, which ends with this process."""
    future = Future[T]()

    def call() -> None:
        try:
            future.set_result(function(*args))
        except BaseException as error:  # whoever asks for the result gets it
            future.set_exception(error)

    Thread(target=call, name="daskw2v-background", daemon=True).start()
    return future
