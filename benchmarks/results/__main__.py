"""Print RESULTS.md and PAPERS.md, and the figures of other pages, from the records in this folder.

python -m benchmarks.results
"""

from benchmarks.records import commit_now, today
from benchmarks.results import MARKED, pages, with_figures


def main() -> None:
    for page, text in pages(today(), commit_now()).items():
        page.write_text(text)
    for marked in MARKED:
        marked.write_text(with_figures(marked, marked.read_text()))


if __name__ == "__main__":
    main()
