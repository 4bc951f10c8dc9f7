"""README is what PyPI shows: its links lead somewhere, and all that it tells users to run, runs.

Blocks run in their order, as a reader would, in one directory outside the checkout, with the wheel installed.
`SUBSTITUTES` is all that they need to run here; a block that needs more fails.
"""

import contextlib
import gzip
import json
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import pytest

from daskw2v.cli import main
from daskw2v.evaluation.catalogue import DATASETS
from daskw2v.storage import Store

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
SHELL = {"", "bash"}
INLINE = re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL))

# What README names and is not here: where text lies, who schedules, who hears of it, GPUs, versions, the checkout.
SUBSTITUTES = {
    "s3://bucket": "{here}",
    "tcp://scheduler:8786": "{cluster}",
    "tcp://host:8786": "{cluster}",
    "https://...": "{webhook}",
    "dask scheduler --port 8786": "dask scheduler --port {port}",
    "tcp://localhost:8786": "tcp://localhost:{port}",
    "for gpu in 0 1 2 3": "for gpu in 0",
    "--device cuda": "--device cpu",
    "v0007-3f2a...": "$(basename work/models/v0001-*)",
    "make demo ": "make --dry-run --directory {root} demo ",
    "make test ": "make --dry-run --directory {root} test ",
}

# A cluster of the installed package, until its input ends.
CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""

# Two topics: words of one are near each other, and far from those of the other.
TOPICS = (["king", "queen", "man", "woman", *(f"court{i}" for i in range(16))], [f"sea{i}" for i in range(20)])


def sentences(seed, count):
    draw = random.Random(seed)
    return [" ".join(draw.choices(TOPICS[i % 2], k=10)) for i in range(count)]


def write_what_readme_names(here):
    """Write text, evaluation sets, sets as `daskw2v datasets` keeps them once downloaded, and a model of last week."""
    (here / "text").mkdir()
    for seed, name in enumerate(("a.txt.gz", "b.txt.gz")):
        (here / "text" / name).write_bytes(gzip.compress("\n".join(sentences(seed, 5000)).encode()))
    lines = (json.dumps({"body": text}) for text in sentences(2, 5000))
    (here / "text" / "c.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    near = [(a, b, 9) for topic in TOPICS for a, b in zip(topic[::2], topic[1::2], strict=True)]
    far = [(a, b, 1) for a, b in zip(*TOPICS, strict=True)]
    pairs = "".join(f"{a}\t{b}\t{score}\n" for a, b, score in near + far)
    for name in ("ws353.tsv", "simlex999.tsv"):
        (here / name).write_text(pairs)
    (here / "questions-words.txt").write_text(": family\nman king woman queen\n")
    (here / "datasets").mkdir()
    for name in ("ws353", "simlex999", "google_analogy"):
        (here / "datasets" / DATASETS[name].file).write_text(pairs)
        Store(str(here / "datasets")).write_manifest({"url": DATASETS[name].url}, f"{name}.json")
    (here / "last-week").symlink_to("work")


@pytest.fixture(scope="module")
def cluster(installed):
    (installed.here / "cluster.py").write_text(CLUSTER)
    line = [installed.environment / "bin" / "python", "cluster.py"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(line, cwd=installed.here, env=installed.variables, **pipes) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture(scope="module")
def webhook():
    """Answer posts; return the address, and the list of what was posted."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", posted
        server.shutdown()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_script(installed, line):
    """Run a script in a session of its own, and end what it left in the background; return its code and output."""
    with (installed.here / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            line, cwd=installed.here, env=installed.variables, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(300)
        finally:
            with contextlib.suppress(ProcessLookupError):  # where nothing was left
                os.killpg(process.pid, signal.SIGTERM)
        output.seek(0)
        return code, output.read()


def test_readme__has_no_link_that_is_dead_on_pypi():
    links = re.findall(r"\]\(([^)\s]+)", README) + re.findall(r"^\[[^\]]+\]: *(\S+)", README, flags=re.MULTILINE)
    links += re.findall(r"(?:href|src)=[\"']?([^\"'\s>]+)", README)
    headings = re.findall(r"^#+ (.+)$", README, flags=re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert [link for link in links if not link.startswith("https://") and link not in anchors] == []


def test_readme__names_scripts_and_benchmarks_that_are_there():
    scripts = set(re.findall(r"\bpipelines/[\w/.]*\w", README))
    modules = {f"{name.replace('.', '/')}" for name in re.findall(r"python -m (benchmarks[\w.]*\w)", README)}
    assert scripts
    assert modules
    assert [path for path in scripts if not (ROOT / path).exists()] == []
    assert [path for path in modules if not (ROOT / f"{path}.py").exists() and not (ROOT / path).is_dir()] == []


@pytest.mark.parametrize("text", sorted({" ".join(t.split()) for t in INLINE if t.startswith("daskw2v ")}))
def test_readme__names_commands_and_options_that_are_there(text):
    command, context = main, click.Context(main)
    _, *words = shlex.split(text)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    known = {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


def test_readme__has_blocks_that_are_run_and_no_others():
    assert {language for language, _ in BLOCKS} == SHELL | {"python"}
    assert [text for text in SUBSTITUTES if not any(text in code for _, code in BLOCKS)] == []


@pytest.mark.timeout(900)  # kernels are compiled anew
def test_readme__runs_from_the_first_block_to_the_last(installed, cluster, webhook):
    url, posted = webhook
    here, values = installed.here, {"cluster": cluster, "webhook": url, "port": str(free_port()), "root": str(ROOT)}
    write_what_readme_names(here)
    for number, (language, code) in enumerate(BLOCKS, start=1):
        for text, substitute in SUBSTITUTES.items():
            code = code.replace(text, substitute.format(here=here, **values))
        (here / "block.txt").write_text(code)
        line = ["bash", "-ex", "block.txt"] if language in SHELL else ["python", "block.txt"]
        status, output = run_script(installed, line)
        assert status == 0, f"block {number} of README:\n{code}\n{output}"
    assert [notice["outcome"] for notice in posted] == ["published"]
