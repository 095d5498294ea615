"""The site of the documentation: `make docs` builds it from the pages beside this file.

Sphinx builds it, because it reports orphan pages and links without a target itself, and MkDocs has
had no release since August 2024. The theme furo loads nothing from a network.
"""

from __future__ import annotations

project = "Proofmark"
html_title = "Proofmark"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
language = "en"
# A word in backquotes is never a reference, and each reference must have a target.
default_role = "code"
nitpicky = True
# The anchors of GitHub for the headings of each page, so that links work in both places.
myst_heading_anchors = 4
highlight_language = "text"
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
