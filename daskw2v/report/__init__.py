"""What a model is and how it came about, on one page; and how it differs from another."""

from daskw2v.report.compare import Comparison, compare
from daskw2v.report.page import write_report

__all__ = ["Comparison", "compare", "write_report"]
