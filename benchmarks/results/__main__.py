"""Print RESULTS.md, and the figures of README.md, from the records in this folder.

python -m benchmarks.results
"""

from benchmarks.records import commit_now, today
from benchmarks.results import PAGE, README, page, readme


def main() -> None:
    PAGE.write_text(page(today(), commit_now()))
    README.write_text(readme(README.read_text()))


if __name__ == "__main__":
    main()
