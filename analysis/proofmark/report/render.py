"""Renders the view as HTML."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_mark_safe

from proofmark.common.sentences import English
from proofmark.common.translation import language, translated
from proofmark.report.text import visible
from proofmark.report.view import View


def render(content: View) -> str:
    """Return the page as HTML; every text is escaped, invisible characters included."""
    environment = Environment(
        loader=PackageLoader("proofmark.report", "."),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (files("proofmark.report") / "style.css").read_text(encoding="utf-8")
    template = environment.get_template("report.html")
    return template.render(
        view=content, style=style, language=language(), translated=translated, _=translated
    )


def _visible(value: object) -> object:
    """Return `value` as visible text; text that the template marks as safe stays unchanged.

    A text in another language than the page is marked, so that a screen reader pronounces it well.
    """
    if hasattr(value, "__html__"):
        return value
    text = visible(str(value))
    if not isinstance(value, English):
        return text
    return do_mark_safe(f'<span lang="en">{escape(text)}</span>')
