"""What a store checks before it is changed."""

from typing import Protocol


class Guard(Protocol):
    """What has to hold before something is written or deleted, such as `lease.Token`."""

    def check(self) -> None:
        """Raise a StoreError if it does not hold."""
