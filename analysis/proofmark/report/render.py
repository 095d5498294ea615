"""Renders the report as HTML. Names of nodes, ids and paths in tables stay on one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from itertools import chain

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_mark_safe

from proofmark.common.message import English
from proofmark.common.translation import language, translated, with_particles
from proofmark.report.additions import BEGINNING
from proofmark.report.page import Section
from proofmark.report.run_data import RunData
from proofmark.report.sections import (
    accepted_runs,
    faulty_nodes,
    figure_tables,
    issues,
    launch_commands,
    main_figures,
    node_provenance,
    signed_sheets,
)
from proofmark.report.summary import Summary, summary, title
from proofmark.report.words import visible
from proofmark.runs.run_files import RunFiles

ROOM = "proofmark.report"
"""The package with the templates and styles of the core."""
MAX_WORD_ANY_SCREEN = 24
"""A word of at most this many characters is in one line on any screen and on paper."""
MAX_WORD_WIDE_SCREEN = 48
"""A word of at most this many characters is in one line on a wide screen."""
_BREAKS = re.compile(r"[-/?|–]")
"""The characters after which a browser breaks a line within a word."""
_PIECE = re.compile(r"[^/,;=:]*[/,;=:]?")


def unbroken(text: str) -> str:
    """Return `text` as HTML whose lines break between words.

    A longer word breaks after a slash, comma, semicolon, colon or equals sign. A piece without one
    of these breaks anywhere, so that a table is never wider than the page.
    """
    return "".join(map(_word, re.split(r"(\s+)", text)))


@lru_cache(maxsize=4096)
def _word(word: str) -> str:
    if len(word) <= MAX_WORD_ANY_SCREEN:
        return f'<span class="w">{escape(word)}</span>' if _BREAKS.search(word) else escape(word)
    pieces = "<wbr>".join(map(_piece, filter(None, _PIECE.findall(word))))
    kind = "w long" if len(word) <= MAX_WORD_WIDE_SCREEN else "any"
    return f'<span class="{kind}">{pieces}</span>'


def _piece(piece: str) -> str:
    kind = "w" if len(piece) <= MAX_WORD_ANY_SCREEN else "any"
    return f'<span class="{kind}">{escape(piece)}</span>'


def page(template: str, content: object, *styles: str, package: str = ROOM) -> str:
    """Return the HTML of a template with `content` as its variable ``view``.

    Every text is escaped, invisible characters included. The template and the styles are files of
    this room, or of the package with the dotted name `package`.
    """
    environment = _environment(package)
    style = "".join(_source(environment, name) for name in styles)
    return environment.get_template(template).render(
        view=content, style=style, language=language(), translated=translated, _=translated
    )


def _source(environment: Environment, name: str) -> str:
    """Return the text of a file beside the templates."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


@cache
def _environment(package: str) -> Environment:
    """Return the environment of the templates, which keeps them compiled."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each, ".") for each in (ROOM, package)]),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = _unbroken
    return environment


def _unbroken(value: object) -> object:
    """Return the text of a cell as HTML whose lines break between words."""
    html = unbroken(_shown(value))
    return do_mark_safe(f'<span lang="en">{html}</span>' if isinstance(value, English) else html)


def _visible(value: object) -> object:
    """Return `value` as visible text; text that the template marks as safe stays unchanged.

    A text in another language than the page is marked, so that a screen reader pronounces it well.
    """
    if hasattr(value, "__html__"):
        return value
    text = _shown(value)
    if not isinstance(value, English):
        return text
    return do_mark_safe(f'<span lang="en">{escape(text)}</span>')


def _shown(value: object) -> str:
    """Return a text as the page shows it: every character visible, Korean with its particles."""
    return with_particles(visible(str(value)))


@dataclass(frozen=True)
class View:
    """The contents of the page, and the plot files that it links to.

    Attributes:
        digest: the foot of each sheet of paper: the SHA-256 of the newest archive of the evidence;
            may be empty.
    """

    title: str
    digest: str
    summary: Summary
    sections: tuple[Section, ...]
    plot_files: Mapping[str, bytes]


def view(run_data: RunData, products: RunFiles | None = None) -> View:
    """Return the page of a run: what is signed, then verdicts, plots, bad nodes and provenance.

    Args:
        products: the files that were made from it, of which the page has digests; None: its own.
    """
    files: dict[str, bytes] = {}
    # By the id of a section, which the page of a run need not have.
    places: dict[str, list[Section]] = {
        BEGINNING: [],
        "contract": [*figure_tables.contract_sections(run_data)],
        "key-figures": [main_figures.section(run_data)],
        "next": [*signed_sheets.next_step_section(run_data)],
        "exceptions": [*signed_sheets.exception_section(run_data)],
        "signatures": [*signed_sheets.signatures(run_data, products or run_data.run.products)],
        "attention": [issues.section(run_data)],
        "judged": [figure_tables.judged_section(run_data)],
        "baseline": [*accepted_runs.sections(run_data)],
        "bad-nodes": [*faulty_nodes.sections(run_data)],
        "observations": [*issues.observations(run_data)],
        "storage-targets": [*faulty_nodes.target_sections(run_data)],
        "file-drivers": [*node_provenance.driver_sections(run_data)],
        "provenance": [node_provenance.section(run_data)],
        "commands": [*launch_commands.sections(run_data)],
        "all": [figure_tables.all_section(run_data)],
    }
    for addition in run_data.additions:
        for added in addition.sections():
            places[added.after].append(added.section)
            files |= added.files
    return View(
        title(run_data),
        f"SHA-256 {run_data.run.seal.digest}" if run_data.run.seal else "",
        summary(run_data),
        tuple(chain.from_iterable(places.values())),
        files,
    )
