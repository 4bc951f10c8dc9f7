"""Scripts of other processes that print what they compile."""

# Prints the module of each kernel that is compiled; `folder` has a small text
PRINT_COMPILED = """
import sys
from pathlib import Path

from numba.core import event


class Compiled(event.Listener):
    def on_start(self, started):
        print(started.data["dispatcher"].py_func.__module__)

    def on_end(self, ended):
        pass


folder = Path(sys.argv[1])
(folder / "text.txt").write_text("".join(f"a{i % 7} b{i % 5} c{i % 3} d{i % 2}\\n" for i in range(100)))
"""
