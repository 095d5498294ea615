"""Renders the report and the summary as HTML."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from proofmark.report.sheet import Sheet
from proofmark.report.text import visible
from proofmark.report.view import View


def render(content: View) -> str:
    """Return the report as HTML; every text is escaped, invisible characters included."""
    return page("report.html", content, "style.css")


def render_summary(content: Sheet) -> str:
    """Return the summary as HTML; every text is escaped, invisible characters included."""
    return page("summary.html", content, "summary.css")


def page(template: str, content: object, *styles: str) -> str:
    """Return the HTML of a template with `content` as its variable ``view``."""
    environment = Environment(
        loader=PackageLoader("proofmark.report", "."),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = files("proofmark.report")
    style = "".join((folder / name).read_text(encoding="utf-8") for name in styles)
    return environment.get_template(template).render(view=content, style=style)


def _visible(value: object) -> object:
    """Return `value` as visible text; text that the template marks as safe stays unchanged."""
    return value if hasattr(value, "__html__") else visible(str(value))
