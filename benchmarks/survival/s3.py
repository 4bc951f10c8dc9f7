"""An object store for one run: moto's server, which fails as it is told (`tests/hosts/object_store.py`)."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import fsspec

_PROGRAM = Path(__file__).parents[2] / "tests" / "hosts" / "object_store.py"
_START = 60.0  # seconds


class ObjectStore:
    """A process; `end` ends it, and its objects are gone."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._url = f"http://127.0.0.1:{port}"
        self.options: dict[str, Any] = {
            "key": "a-key", "secret": "a-secret", "endpoint_url": self._url,
            "config_kwargs": {"connect_timeout": 3, "read_timeout": 3, "retries": {"total_max_attempts": 1}},
        }  # fmt: skip
        self._await()
        fsspec.filesystem("s3", **self.options, skip_instance_cache=True).mkdir("bucket")

    def _await(self) -> None:
        until = time.monotonic() + _START
        while True:
            try:
                urllib.request.urlopen(self._url, timeout=10).close()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
            else:
                return

    def be(self, kind: str, seconds: float) -> None:
        """Make a fault of `object_store.Fault`, for some seconds from the next request on."""
        fault = json.dumps({"kind": kind, "seconds": seconds}).encode()
        request = urllib.request.Request(f"{self._url}/-/faults", fault, method="PUT")
        urllib.request.urlopen(request, timeout=10).close()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
