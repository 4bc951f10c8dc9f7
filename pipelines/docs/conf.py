"""Sphinx's configuration; `python -m pipelines.docs.build` makes the site."""

import os

from daskw2v import __version__

project = "daskw2v"
author = "daskw2v developers"
version = release = __version__
language = "en"

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb"]
highlight_language = "none"  # of blocks that name no language: shells, drawings, trees
pygments_dark_style = "monokai"
html_theme = "furo"  # light, and dark where the reader's system is
html_title = f"daskw2v {release}"
html_show_copyright = html_show_sphinx = html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
exclude_patterns = ["static"]

default_role = "py:obj"  # `Params` in a docstring leads to what it names, where that is on the site
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 70
numpydoc_show_class_members = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

nb_execution_mode = os.environ.get("DOCS_NOTEBOOKS", "force")
nb_execution_timeout = 900  # seconds of a cell
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # progress, and paths of the machine that built the page
