"""The site of the documentation: `make docs` builds it from the pages beside this file.

Sphinx builds it, because it reports orphan pages and links without a target itself, and MkDocs has
had no release since August 2024. The theme furo loads nothing from a network. What it leaves out
for the keyboard and for screen readers is here and in `theme/`.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "Proofmark"
html_title = "Proofmark"
extensions = ["myst_parser"]
exclude_patterns = ["_build", "theme"]
language = "en"
# A word in backquotes is never a reference, and each reference must have a target.
default_role = "code"
nitpicky = True
# The anchors of GitHub for the headings of each page, so that links work in both places.
myst_heading_anchors = 4
highlight_language = "text"
html_theme = "furo"
templates_path = ["theme/templates"]
html_static_path = ["theme/static"]
html_css_files = ["keyboard.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


class KeyboardTranslator(HTML5Translator):
    """Writes tables and code so that the keyboard scrolls them: they may be wider than a window."""

    def starttag(self, node: nodes.Element, tagname: str, *words: str, **attributes: str) -> str:
        """Return the start of an element; the box that the theme puts around a table scrolls.

        The title of a list of pages is no heading: Sphinx calls it one, and gives it no level.
        """
        if tagname == "div" and "table-wrapper" in node.get("classes", []):
            attributes |= scrolled("Table", node)
        if attributes.get("ROLE") == "heading":
            del attributes["ROLE"]
        return super().starttag(node, tagname, *words, **attributes)

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        """Write code, which scrolls."""
        names = "".join(
            f' {name}="{self.attval(text)}"' for name, text in scrolled("Code", node).items()
        )
        before = len(self.body)
        try:
            super().visit_literal_block(node)
        finally:  # highlighted code ends with SkipNode
            written = "".join(self.body[before:])
            self.body[before:] = [written.replace("<pre", f"<pre{names}", 1)]


def scrolled(what: str, node: nodes.Element) -> dict[str, str]:
    """Return the attributes of a box that scrolls: it is in the order of Tab, and has a name."""
    while node.parent is not None and not isinstance(node, nodes.section):
        node = node.parent
    title = node.next_node(nodes.title)
    name = f"{what}: {title.astext()}" if title else what
    return {"tabindex": "0", "role": "group", "aria-label": name}


def setup(app: Sphinx) -> None:
    """Register what the theme leaves out."""
    app.set_translator("html", KeyboardTranslator)
