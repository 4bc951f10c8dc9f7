"""An object store that answers as S3 does (moto's server), and is ill when it is told to be: a process of its own.

Objects lie in its memory. Two paths are not S3's: who puts a fault to /-/faults makes it so from then on, and
/-/requests gives what was asked for since the last time.

    python object_store.py PORT
"""

import json
import sys
import time
from dataclasses import dataclass, field
from io import BytesIO
from threading import Event, Lock, Thread, Timer

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

FAILED = {
    "fail": (
        "503 Slow Down",
        b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
    ),
    "error": ("500 Internal Server Error", b"<Error><Code>InternalError</Code><Message>Try again.</Message></Error>"),
}
SLOW = 1.0  # seconds


@dataclass
class Fault:
    """What goes wrong with requests whose path holds a text: with so many of them, from the first on for some seconds.

    Kinds: "fail" (503), "error" (500), "stall" (no answer while the fault lasts), "slow", "half" (of the body), "twice"
    (a write is done again later), "vanish" (nobody listens).
    """

    kind: str
    methods: list[str] = field(default_factory=lambda: ["GET", "PUT", "HEAD", "POST", "DELETE"])
    path: str = ""
    requests: int = 1 << 30
    seconds: float = 1e9
    began: float | None = None

    def meets(self, method, path):
        """Tell whether a request is to suffer; this counts as one."""
        if method not in self.methods or self.path not in path or not self.requests:
            return False
        self.began = self.began or time.monotonic()
        self.requests -= 1
        return time.monotonic() < self.began + self.seconds


class Faulty:
    """A WSGI application in front of S3's."""

    def __init__(self):
        self.vanished = Event()
        self._s3, self._lock = DomainDispatcherApplication(create_backend_app), Lock()
        self._fault, self._over, self._requests = Fault("none"), Event(), []

    def __call__(self, environ, start_response):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if path == "/-/faults":
            return self._change(json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))), start_response)
        if path == "/-/requests":
            return self._report(start_response)
        with self._lock:
            fault, over, ill = self._fault, self._over, self._fault.meets(method, path)
            self._requests.append((method, path, environ.get("QUERY_STRING", ""), fault.kind if ill else ""))
        if ill and fault.kind in FAILED:
            status, said = FAILED[fault.kind]
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(said)))])
            return [] if method == "HEAD" else [said]
        if ill and fault.kind == "slow":
            time.sleep(SLOW)
        if ill and fault.kind == "twice" and method == "PUT":
            content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = BytesIO(content)
            again = {**environ, "wsgi.input": BytesIO(content)}
            Timer(SLOW, lambda: b"".join(self._s3(again, lambda *_: None))).start()
        if ill and fault.kind == "stall":
            over.wait(fault.began + fault.seconds - time.monotonic())
        if ill and fault.kind == "vanish":
            self.vanished.set()
            raise ConnectionError("vanished")
        body = b"".join(self._s3(environ, start_response))
        return [body[: len(body) // 2] if ill and fault.kind == "half" else body]

    def _change(self, fault, start_response):
        with self._lock:
            self._over.set()
            self._fault, self._over = Fault(**fault), Event()
        start_response("200 OK", [("Content-Length", "0")])
        return []

    def _report(self, start_response):
        with self._lock:
            answer, self._requests = json.dumps([self._fault.began is not None, self._requests]).encode(), []
        start_response("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]

    def vanish(self):
        """Return how long nobody is to listen."""
        self.vanished.clear()
        return self._fault.seconds


def main():
    store, port = Faulty(), int(sys.argv[1])
    while True:
        server = make_server("0.0.0.0", port, store, threaded=True, request_handler=MotoRequestHandler)
        Thread(target=server.serve_forever, daemon=True).start()
        store.vanished.wait()
        server.shutdown()
        server.socket.close()
        time.sleep(store.vanish())


if __name__ == "__main__":
    main()
