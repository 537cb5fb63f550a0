"""How Sphinx builds these pages for `make docs`. Nothing is fetched when they are built or read."""

from pathlib import Path

import banditmesh as bm
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
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
root_doc = "index"

# Markdown: formulas between dollars, and links to headings of other pages.
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4

# Sessions are copied without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

# Docstrings: what is between single backticks is code.
default_role = "code"
autosummary_generate = True
# Pages that differ in case alone would be one file on some systems.
autosummary_filename_map = {
    "banditmesh.bounds": "banditmesh.bounds-function",
    "banditmesh.frontier": "banditmesh.frontier-function",
    "banditmesh.theory.estimate": "banditmesh.theory.estimate-function",
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = "banditmesh"
html_static_path = ["_static"]
# The story of the front page, with the numbers of this version.
_STORY = Path(__file__).parent / "_build" / "story"
_STORY.mkdir(parents=True, exist_ok=True)
bm.story(_STORY / "story.html")
html_extra_path = [str(_STORY)]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
