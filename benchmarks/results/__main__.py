"""Print RESULTS.md, and the figures of other pages, from the records in this folder.

python -m benchmarks.results
"""

from benchmarks.records import commit_now, today
from benchmarks.results import MARKED, PAGE, page, with_figures


def main() -> None:
    PAGE.write_text(page(today(), commit_now()))
    for marked in MARKED:
        marked.write_text(with_figures(marked, marked.read_text()))


if __name__ == "__main__":
    main()
