"""The documentation is true: its links lead somewhere, and its code blocks run.

Blocks run in the order of `PAGES`, as a reader would run them, in one directory outside the checkout, with the wheel
installed. `SUBSTITUTES` is all that they need to run here; a block that needs more fails.
"""

import contextlib
import gzip
import itertools
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

from daskw2v import Params, Resources
from daskw2v.cli import main
from daskw2v.errors import ParameterError
from daskw2v.evaluation.datasets import DATASETS
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.store.storage import Store
from daskw2v.training.devices import DEVICES
from daskw2v.training.strategies import STRATEGIES, check_strategy

ROOT = Path(__file__).parents[2]
# In the order in which their blocks run: README trains the models that later pages query, and retraining comes last
PAGES = (
    "README.md",
    "daskw2v/ARCHITECTURE.md",
    "daskw2v/config/README.md",
    "daskw2v/kernels/README.md",
    "daskw2v/collections/README.md",
    "daskw2v/corpus/README.md",
    "daskw2v/features/README.md",
    "daskw2v/phrases/README.md",
    "daskw2v/sequences/README.md",
    "daskw2v/objectives/README.md",
    "daskw2v/cluster/README.md",
    "daskw2v/store/README.md",
    "daskw2v/training/averaging/README.md",
    "daskw2v/training/rotation/README.md",
    "daskw2v/training/columns/README.md",
    "daskw2v/kernels/cuda/README.md",
    "daskw2v/evaluation/README.md",
    "daskw2v/training/README.md",
    "daskw2v/models/README.md",
    "daskw2v/retraining/README.md",
    "pipelines/README.md",
    "benchmarks/README.md",
)
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
README = TEXTS["README.md"]
EVERYTHING = "\n".join(TEXTS.values())
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
# Their blocks are drawings, or parts of files
NOT_RUN = {"daskw2v/ARCHITECTURE.md", "daskw2v/config/README.md", "daskw2v/kernels/README.md"}
BLOCKS = [(page, *block) for page in PAGES if page not in NOT_RUN for block in FENCED.findall(TEXTS[page])]
SHELL = {"", "bash"}
INLINE = re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", FENCED.sub("", EVERYTHING))

# What the pages name and is not here: text, scheduler, webhook, GPUs, versions, the checkout.
SUBSTITUTES = {
    "s3://bucket": "{here}",
    "tcp://scheduler:8786": "{cluster}",
    "tcp://host:8786": "{cluster}",
    "https://...": "{webhook}",
    "dask scheduler --port 8786": "dask scheduler --port {port}",
    "tcp://localhost:8786": "tcp://localhost:{port}",
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

# Two topics: words of one are near each other, and far from those of the other. Together they are more than a model
# has dimensions (100): fewer words of two versions let no rotation between them follow.
TOPICS = (["king", "queen", "man", "woman", *(f"court{i}" for i in range(96))], [f"sea{i}" for i in range(100)])


def sentences(seed, count):
    draw = random.Random(seed)
    return [" ".join(draw.choices(TOPICS[i % 2], k=10)) for i in range(count)]


def write_what_pages_name(here):
    """Write text, evaluation sets, sets as `daskw2v datasets` keeps them once downloaded, and models."""
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
    vectors = "".join(f"{word} {n} {n + 1}\n" for n, word in enumerate(TOPICS[0]))
    (here / "wiki.vec").write_text(f"{len(TOPICS[0])} 2\n{vectors}")
    (here / "datasets").mkdir()
    for name in ("ws353", "simlex999", "google_analogy"):
        (here / "datasets" / DATASETS[name].file).write_text(pairs)
        Store(str(here / "datasets")).write_manifest({"url": DATASETS[name].url}, f"{name}.json")
    (here / "last-week").symlink_to("work")
    items = ((word, place, n / 2) for place, topic in enumerate(TOPICS) for n, word in enumerate(topic))
    rows = (f"{word},{place},{price}\n" for word, place, price in items)
    (here / "items.csv").write_text("item,category,price\n" + "".join(rows))


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
            line,
            cwd=installed.here,
            env=installed.variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(300)
        finally:
            with contextlib.suppress(ProcessLookupError):  # where nothing was left
                os.killpg(process.pid, signal.SIGTERM)
        output.seek(0)
        return code, output.read()


def links_of(page):
    text = FENCED.sub("", TEXTS[page])
    links = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"^\[[^\]]+\]: *(\S+)", text, flags=re.MULTILINE)
    return links + re.findall(r"(?:href|src)=[\"']?([^\"'\s>]+)", text)


def anchors_of(page):
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", TEXTS[page]), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page, link):
    name, _, anchor = link.partition("#")
    target = (ROOT / page).parent.joinpath(name).resolve() if name else ROOT / page
    if not target.exists():
        return False
    return not anchor or anchor in anchors_of(target.relative_to(ROOT).as_posix())


def test_pages__are_all_tested():
    found = {path for folder in ("daskw2v", "pipelines", "benchmarks") for path in (ROOT / folder).rglob("README.md")}
    assert {path.relative_to(ROOT).as_posix() for path in found} <= set(PAGES)


def test_readme__has_no_link_that_is_dead_on_pypi():
    anchors = {f"#{anchor}" for anchor in anchors_of("README.md")}
    assert [link for link in links_of("README.md") if not link.startswith("https://") and link not in anchors] == []


@pytest.mark.parametrize("page", PAGES[1:])
def test_page__has_no_dead_link(page):
    links = [link for link in links_of(page) if not link.startswith("https://")]
    assert [link for link in links if not leads_somewhere(page, link)] == []


def test_readme__names_pages_that_are_there():
    named = set(re.findall(r"`([\w/]+\.md)`", README))
    assert set(PAGES) - {"README.md"} - named <= {page for page in PAGES if page.startswith("daskw2v/training/")}
    assert [page for page in named if not (ROOT / page).exists()] == []


def test_pages__name_scripts_and_benchmarks_that_are_there():
    scripts = set(re.findall(r"\bpipelines/[\w/.]*\w", EVERYTHING))
    modules = {f"{name.replace('.', '/')}" for name in re.findall(r"python -m (benchmarks[\w.]*\w)", EVERYTHING)}
    assert scripts
    assert modules
    assert [path for path in scripts if not (ROOT / path).exists()] == []
    assert [path for path in modules if not (ROOT / f"{path}.py").exists() and not (ROOT / path).is_dir()] == []


@pytest.mark.parametrize("page", PAGES)
def test_page__names_modules_that_are_there(page):
    """`cpu.py` may be in any folder, `devices/cpu.py` in any folder `devices`."""
    modules = [
        path.as_posix()
        for folder in ("daskw2v", "pipelines", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = re.findall(r"`([\w/]+\.py)`", TEXTS[page])
    assert [name for name in named if not any(module.endswith(f"/{name}") for module in modules)] == []


def test_readme__says_what_can_be_combined():
    table = re.search(r"^\| `objective` .*?(?=^$)", README, flags=re.MULTILINE | re.DOTALL)
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table[0].splitlines()]
    said = set()
    for objective, _, *cells in rows[2:]:
        for strategy, devices in zip(rows[0][2:], cells, strict=True):
            said |= {(objective.partition("`")[0], strategy, device) for device in devices.split(", ") if device}
    assert said == {
        (objective, strategy, device)
        for objective, strategy, device in itertools.product(OBJECTIVES, STRATEGIES, DEVICES)
        if is_trained(Params(objective=objective, strategy=strategy), Resources(device=device))
    }


def is_trained(params, resources):
    with contextlib.suppress(ParameterError):
        check_strategy(params, resources)
        return True
    return False


@pytest.mark.parametrize("text", sorted({" ".join(t.split()) for t in INLINE if t.startswith("daskw2v ")}))
def test_pages__name_commands_and_options_that_are_there(text):
    command, context = main, click.Context(main)
    _, *words = shlex.split(text)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    known = {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


def test_pages__have_blocks_that_are_run_and_no_others():
    assert {language for _, language, _ in BLOCKS} == SHELL | {"python"}
    assert [text for text in SUBSTITUTES if not any(text in code for *_, code in BLOCKS)] == []


@pytest.mark.slow
@pytest.mark.timeout(900)  # kernels are compiled anew
def test_pages__run_from_the_first_block_to_the_last(installed, cluster, webhook):
    url, posted = webhook
    here, values = installed.here, {"cluster": cluster, "webhook": url, "port": str(free_port()), "root": str(ROOT)}
    write_what_pages_name(here)
    for page, language, code in BLOCKS:
        for text, substitute in SUBSTITUTES.items():
            code = code.replace(text, substitute.format(here=here, **values))
        (here / "block.txt").write_text(code)
        line = ["bash", "-ex", "block.txt"] if language in SHELL else ["python", "block.txt"]
        status, output = run_script(installed, line)
        assert status == 0, f"a block of {page}:\n{code}\n{output}"
    assert [notice["outcome"] for notice in posted] == ["published"]
