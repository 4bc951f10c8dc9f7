"""Build the documentation as a static site, and check its links.

    python -m pipelines.docs.build [--without-notebooks] [FOLDER]

FOLDER/source (build/docs by default) gets the pages of `pipelines/docs`, the READMEs and the notebooks; the site is
FOLDER/html. Notebooks are run, unless `--without-notebooks` is given. Warnings, failing notebooks and dead links are
errors.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pipelines.docs.links import dead_links
from pipelines.docs.pages import write_pages


def build(folder: Path, notebooks: bool) -> int:
    """Build the site in a folder; return the exit code."""
    source, html = folder / "source", folder / "html"
    for old in (source, html):
        shutil.rmtree(old, ignore_errors=True)
    write_pages(source)
    line = ["-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", f"{folder}/doctrees"]
    mode = "force" if notebooks else "off"
    environment = {**os.environ, "DOCS_NOTEBOOKS": mode}
    done = subprocess.run([sys.executable, *line, source, html], env=environment, check=False)
    if done.returncode:
        return done.returncode
    dead = dead_links(html)
    print(*dead, f"{html / 'index.html'}: {len(list(html.rglob('*.html')))} pages, {len(dead)} dead links", sep="\n")
    return 1 if dead else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/docs"))
    parser.add_argument("--without-notebooks", action="store_true", help="show notebooks without outputs")
    options = parser.parse_args()
    return build(options.folder.absolute(), not options.without_notebooks)


if __name__ == "__main__":
    sys.exit(main())
