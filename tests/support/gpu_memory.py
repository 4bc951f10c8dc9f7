"""What Numba tells of the memory of a GPU, for tests on a stand-in."""

from types import SimpleNamespace


def context_of(free: float) -> SimpleNamespace:
    """Return the context of a GPU with so many free bytes."""
    return SimpleNamespace(
        memory_manager=SimpleNamespace(deallocations=set()), get_memory_info=lambda: SimpleNamespace(free=free)
    )
