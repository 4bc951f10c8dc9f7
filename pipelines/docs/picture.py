"""Draw daskw2v/architecture.svg: the layers of the package, their folders, and the way of the data through them.

    python -m pipelines.docs.picture

The layers are those that import-linter checks (pyproject.toml); a folder's text is the first sentence of its docstring.
"""

import ast
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "daskw2v"
PICTURE = PACKAGE / "architecture.svg"

# The way of the data: what each package on it makes for the next
FLOW = {
    "corpus": "blocks of text",
    "shards": "codes and dictionaries",
    "vocabulary": "counts and ids",
    "sampling": "segments of ids, pairs",
    "objectives": "updates of rows",
    "training": "trained rows",
    "models": "a version",
    "evaluation": "scores",
    "retraining": "the served version",
}
WIDTH, MARGIN, LINE, PAD, LABELS = 1000, 12, 17, 10, 170
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2933 }
.name { font-weight: 600 } .flow { fill: #0b6e99; font-style: italic } .small { fill: #52606d; font-size: 12px }
rect { fill: #f5f7fa; stroke: #9aa5b1 } .way { fill: #e3f2f9; stroke: #0b6e99 }
circle { fill: #0b6e99 } .step { fill: #fff; font-weight: 600; text-anchor: middle }
"""


class Box(NamedTuple):
    """A package or a module of a layer: its name, the lines of its text, and whether data flows through it."""

    name: str
    lines: list[str]
    on_the_way: bool


def contracts() -> dict[str, list[list[str]]]:
    """Return the layers of each container, the highest first: the names that stand in each."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {
        contract.get("containers", [""])[0].removeprefix("daskw2v."): [
            [name.strip().removeprefix("daskw2v.") for name in layer.split("|")] for layer in contract["layers"]
        ]
        for contract in settings["contracts"]
    }


def sentence_of(path: Path) -> str:
    """Return the first sentence of the docstring of a package or module, without its full stop."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("`", "").split(". ")[0].rstrip(".")


def folded(text: str, characters: int) -> Iterator[str]:
    """Yield text as lines of at most so many characters."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > characters:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def box_of(name: str, inner: dict[str, list[list[str]]], characters: int) -> Box:
    """Return the box of a package or module: its sentence, and what is in it, the highest layer first."""
    path = PACKAGE / name
    lines = [*folded(sentence_of(path), characters)]
    folders = sorted(p.parent.relative_to(path).as_posix() for p in path.rglob("__init__.py") if p.parent != path)
    if name not in inner and folders:
        lines += folded("  ".join(f"{folder}/" for folder in folders), characters)
    for layer in inner.get(name, ()):
        if modules := [f"{one}.py" for one in layer if one not in folders]:
            lines.append("  ".join(modules))
        for folder in (folder for folder in folders if folder.split("/")[0] in layer):
            lines += folded(f"{folder}/: {sentence_of(path / folder)}", characters)
    return Box(name, lines, name in FLOW)


def picture() -> str:
    """Return the picture as SVG."""
    every = contracts()
    shapes, y = list[str](), MARGIN
    for layer in every.pop(""):
        width = (WIDTH - LABELS - MARGIN * (len(layer) + 1)) // len(layer)
        boxes = [box_of(name, every, width // 7) for name in layer]
        height = max(len(box.lines) for box in boxes) * LINE + LINE + 2 * PAD
        for number, box in enumerate(boxes):
            shapes += _drawn(box, MARGIN + number * (width + MARGIN), y, width, height)
            shapes += _step(box.name, y + height // 2) if box.on_the_way else ()
        y += height + MARGIN
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">'
    title = "<title>The layers of daskw2v, each of which imports those below it, and the way of the data</title>"
    white = f'<rect width="{WIDTH}" height="{y}" style="fill: #fff; stroke: none"/>'
    return "\n".join([frame, title, f"<style>{STYLE}</style>", white, *shapes, "</svg>", ""])


def _step(name: str, y: int) -> Iterator[str]:
    """Yield the shapes of a step of the data's way."""
    x = WIDTH - LABELS + MARGIN
    yield f'<circle cx="{x}" cy="{y}" r="{PAD}"/>'
    yield f'<text class="step" x="{x}" y="{y + 5}">{[*FLOW].index(name) + 1}</text>'
    yield f'<text class="flow" x="{x + 2 * PAD}" y="{y + 5}">{escape(FLOW[name])}</text>'


def _drawn(box: Box, x: int, y: int, width: int, height: int) -> Iterator[str]:
    """Yield the shapes of a box."""
    kind = ' class="way"' if box.on_the_way else ""
    yield f'<rect{kind} x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>'
    slash = "/" if (PACKAGE / box.name).is_dir() else ".py"
    yield f'<text class="name" x="{x + PAD}" y="{y + PAD + 12}">{box.name}{slash}</text>'
    for number, line in enumerate(box.lines, 1):
        yield f'<text class="small" x="{x + PAD}" y="{y + PAD + 12 + number * LINE}">{escape(line)}</text>'


def main() -> None:
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
