"""From the view to HTML."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from proofmark.report.text import visible
from proofmark.report.view import View


def render(content: View) -> str:
    """Return the page; every text in it is made visible and escaped, whatever it holds."""
    environment = Environment(
        loader=PackageLoader("proofmark.report", "."),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (files("proofmark.report") / "style.css").read_text(encoding="utf-8")
    template = environment.get_template("report.html")
    return template.render(view=content, style=style)


def _shown(value: object) -> object:
    """Make a text visible; what the template marks as safe is markup of this package."""
    return value if hasattr(value, "__html__") else visible(str(value))
