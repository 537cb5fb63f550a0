"""How Sphinx builds these pages: `make docs`. Nothing is fetched, neither when they are built nor when they are read."""

from banditmesh import __version__

project = "banditmesh"
author = "The banditmesh developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_mathjax_offline",
]
exclude_patterns = ["_build"]
root_doc = "index"
nitpicky = False

# Markdown: formulas between dollars, and links to headings of other pages.
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4

# Docstrings: what stands between single backticks is code.
default_role = "code"
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = "banditmesh"
html_copy_source = False
html_show_sourcelink = False
