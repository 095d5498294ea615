"""Extracts the texts for people from the code, and writes the catalogues of their translations.

``python -m tests.catalogues`` adds new texts to each ``proofmark.po``, removes old texts, and
compiles it as ``proofmark.mo``. Its exit code is 1 if a text has no translation.
"""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract
from tests.folders import BENCHMARKS, PACKAGE, ROOT

from proofmark.cases.case import TELEMETRY
from proofmark.cases.loading import load_benchmarks
from proofmark.common.message import WORDS
from proofmark.common.message_table import MESSAGES, added_messages
from proofmark.common.translation import CATALOGUES, DOMAIN, ENGLISH, LANGUAGES
from proofmark.packages.papers.all_claims import CLAIMS

Key = str | tuple[str, str]
"""A text, or a text with its plural."""
MARKS = {"_", "N_"}
"""Functions whose only argument is a text."""
OPTIONS = {"silent": "false"}
"""An error in a template is raised."""
COUNTED = "count"
"""The function of `proofmark.report.words` that adds a number to a noun."""


def catalogue(language: str) -> Path:
    """Return the path of the translations of a language."""
    return CATALOGUES / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def texts() -> Iterator[Key]:
    """Yield the texts of the code, of its templates, of the cases and of the claims."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from texts_of_code(path.read_text(encoding="utf-8"), path.name)
    for path in sorted(PACKAGE.rglob("*.html")):
        with path.open("rb") as file:
            for _line, _function, text, _comments in babel_extract(file, ["_"], (), OPTIONS):
                assert isinstance(text, str), f"{path.name}: {text}"
                yield text
    yield from (*MESSAGES.values(), *added_messages().values(), *WORDS)
    yield from _of_cases()
    yield from (claim.statement for claim in CLAIMS)


def _of_cases() -> Iterator[str]:
    """Yield the titles of suites and cases, and the meanings of metrics."""
    benchmarks = load_benchmarks(BENCHMARKS)
    yield from (suite.title for suite in benchmarks.suites.values())
    for case in benchmarks.cases.values():
        yield case.title
        yield from (metric.what for metric in case.metrics.values() if metric.what)
    yield from (metric.what for metric in TELEMETRY.values() if metric.what)


def texts_of_code(code: str, name: str = "code") -> Iterator[Key]:
    """Yield the texts in calls of `MARKS` and `COUNTED`.

    Raises:
        ValueError: a text is not a literal.
    """
    tree = ast.parse(code)
    counts = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "proofmark.report.words"
        and any(each.name == COUNTED for each in node.names)
        for node in ast.walk(tree)
    )
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        arguments = node.args
        if node.func.id in MARKS:
            yield _literal(arguments[0], name)
        elif node.func.id == COUNTED and counts:
            one = _literal(arguments[1], name)
            many = _literal(arguments[2], name) if len(arguments) > 2 else f"{one}s"
            yield f"{{count}} {one}", f"{{count}} {many}"


def _literal(node: ast.expr, name: str) -> str:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise ValueError(f"{name}:{node.lineno}: {ast.unparse(node)} is not a literal text")
    return node.value


def updated(language: str) -> Catalog:
    """Return the catalogue of a language with exactly the texts of the code."""
    old = read(language)
    new = Catalog(
        locale=language,
        project="Proofmark",
        version="1",
        msgid_bugs_address="the maintainers",
        copyright_holder="Proofmark authors",
        header_comment="# Translations of the texts for people. `make catalogues` updates this.",
        creation_date=old.creation_date,
        revision_date=old.revision_date,
        last_translator="Proofmark authors",
        language_team=language,
    )
    new.fuzzy = False
    for key in dict.fromkeys(texts()):
        known = old.get(key[0] if isinstance(key, tuple) else key)
        kept = known is not None and known.pluralizable == isinstance(key, tuple)
        new.add(key, known.string if known and kept else "")
    return new


def read(language: str) -> Catalog:
    """Return the written catalogue of a language."""
    with catalogue(language).open("rb") as file:
        return read_po(file, locale=language, domain=DOMAIN)


def as_po(catalog: Catalog) -> bytes:
    """Return a catalogue as the text of its file."""
    file = io.BytesIO()
    write_po(file, catalog, width=100, sort_output=True, no_location=True)
    return file.getvalue()


def as_mo(catalog: Catalog) -> bytes:
    """Return a catalogue as ``gettext`` of Python reads it."""
    file = io.BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def untranslated(catalog: Catalog) -> list[str]:
    """Return the texts without a translation."""
    return [str(each.id) for each in catalog if each.id and not _is_translated(each)]


def _is_translated(message: Message) -> bool:
    strings = [message.string] if isinstance(message.string, str) else message.string or [""]
    return all(strings)


def main() -> int:
    """Update the catalogues of all languages but English; print the texts without a translation."""
    missing = 0
    for language in LANGUAGES:
        if language == ENGLISH:
            continue
        catalog = updated(language)
        path = catalogue(language)
        path.write_bytes(as_po(catalog))
        path.with_suffix(".mo").write_bytes(as_mo(read(language)))
        for text in untranslated(catalog):
            missing += 1
            print(f"{path.relative_to(ROOT)}: no translation of {text!r}")
        print(f"{path.relative_to(ROOT)}: {len(catalog)} texts")
    return min(missing, 1)


if __name__ == "__main__":
    sys.exit(main())
