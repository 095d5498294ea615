"""Renders the report and the summary as HTML."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from proofmark.report.fonts import has_hangul
from proofmark.report.sheet import Sheet
from proofmark.report.text import visible
from proofmark.report.view import View


def render(content: View) -> str:
    """Return the page as HTML; every text is escaped, invisible characters included."""
    return _template("report.html").render(view=content, style=_style("style.css"))


def render_summary(content: Sheet) -> str:
    """Return the summary as HTML; every text is escaped, invisible characters included."""
    language = "ko" if has_hangul(content.declaration) else "en"
    style = _style("summary.css")
    return _template("summary.html").render(sheet=content, style=style, language=language)


def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("proofmark.report", "."),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _style(name: str) -> str:
    return (files("proofmark.report") / name).read_text(encoding="utf-8")


def _visible(value: object) -> object:
    """Return `value` as visible text; text that the template marks as safe stays unchanged."""
    return value if hasattr(value, "__html__") else visible(str(value))
