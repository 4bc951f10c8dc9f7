"""An HTML report about a model, and the comparison of two models."""

from daskw2v.reports.compare import Comparison, compare
from daskw2v.reports.page import write_report

__all__ = ["Comparison", "compare", "write_report"]
