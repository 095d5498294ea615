"""The catalogues of translations: complete, compiled, and no text of the report without a mark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from tests import catalogues
from tests.folders import PACKAGE

from proofmark.common.message import Message
from proofmark.common.message_table import MESSAGES, added_messages
from proofmark.common.translation import ENGLISH, LANGUAGES

TRANSLATED = [language for language in LANGUAGES if language != ENGLISH]
MARKS = {*catalogues.MARKS, catalogues.COUNTED, "bad_input", "AssertionError"}
PROSE = re.compile(r"[A-Za-z]{2,}[,.;:]?[ –]+\(?[A-Za-z0-9]|^[A-Z][a-z]+|^[a-z]+ $")
"""A text of two words or more, or a word that begins a sentence."""
NO_TEXT = {
    # classes of CSS, options of matplotlib, parts of SVG and HTML
    *("word UNJUDGED", "word ", "facts ", "dense ", "outside upper left", "offset points"),
    *("axes fraction", "fill: none", "fill: ", "Creator", "Date", "Format", "Type", "Software"),
    *('<svg viewBox="0 0 ', '<polyline points="', '<polygon points="', '<circle cx="'),
    *('<rect class="', '<path d="', '<path d="M', "change ", "number ", "code commands"),
    *("DejaVu Sans", "NanumGothic", "-title ", '<span lang="en">', "Proofmark", "Proofmark – "),
    # units, names of programs, of figures and of modes
    *("KiB", "MiB", "GiB", "TiB", "Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Mb/s", " GFlop/s"),
    *("Rmax", "Alltoall", "Bcast", "Bandwidth", "All2All", "Quadrant", "Hemisphere"),
    "PingPong|PingPing|Uniband|Biband|Sendrecv|Exchange|(Uni|Bi|Co)random|Bandwidth|Latency",
    *(" GFlop/s, DGEMM × ranks ", ": SHA-256 ", "stdout: SHA-256 "),
    # commands, and the beginning of a sentence of a claim
    *("sh steps/", "proofmark rerun runs/", "\nproofmark report runs/", "measured on "),
    *("proofmark rerun ", "\nproofmark report "),
    # HTML, files of fonts, and messages of errors
    *('<span class="', '<span class="w">', "NanumGothic.ttf", "NanumGothicBold.ttf"),
    *("the Python package ", ": run make .venv", "a release that this kit knows: "),
    "versions as 1.2.3 of ",
}
"""Literals in the room report that no reader reads as English text."""
SIGNS = re.compile(
    r"([\W\d]|\{\w+\}|HPL|High-Performance Linpack|Rmax|Rpeak|GiB"
    r"|Intel MPI Benchmarks|PingPong|UTC|BLAS|MPI)*"
)
"""A translation without a Korean word: fields, signs, names of programs and units."""
FIELD = re.compile(r"\{(\w*)(?::[^}]*\|[^}]*)?\}")
PLURAL = re.compile(r"\{\w+:[^|}]*\|([^}]*)\}")
TEMPLATES = (*MESSAGES.values(), *added_messages().values())
ENGLISH_ROOMS = {"exports"}
"""Packages that write no page: files for programs."""


def bare_texts(code: str) -> Iterator[str]:
    """Yield the English texts of a module that no call of `MARKS` contains."""
    tree = ast.parse(code)
    marked: set[int] = set()
    for node in ast.walk(tree):
        documentation = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        pattern = isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        if documentation or pattern or (call and node.func.id in MARKS):  # type: ignore[attr-defined]
            marked |= {id(each) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            known = id(node) in marked or node.value in NO_TEXT
            if not known and PROSE.search(node.value):
                yield f"{node.lineno}: {node.value!r}"


@pytest.fixture(scope="module", params=TRANSLATED)
def written(request: pytest.FixtureRequest) -> Catalog:
    return catalogues.read(request.param)


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_catalogue_has_exactly_the_texts_of_the_code(language: str) -> None:
    path = catalogues.catalogue(language)
    again = "run `make catalogues`, then translate the texts that it prints"
    assert catalogues.as_po(catalogues.updated(language)) == path.read_bytes(), again


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_compiled_catalogue_is_the_written_one(language: str) -> None:
    compiled = catalogues.catalogue(language).with_suffix(".mo").read_bytes()
    assert compiled == catalogues.as_mo(catalogues.read(language)), "run `make catalogues`"


def test_each_text_has_a_translation_with_the_same_fields(written: Catalog) -> None:
    assert catalogues.untranslated(written) == []
    differing = []
    for message in written:
        keys = message.id[1:] if isinstance(message.id, tuple) else (message.id,)
        strings = message.string if isinstance(message.string, tuple) else (message.string,)
        fields = {frozenset(FIELD.findall(text or "")) for text in (*keys, *strings)}
        braces = {("{" in (text or "")) and "{{" in (text or "") for text in strings}
        if message.id and (len(fields) != 1 or True in braces):
            differing.append(message.id)
    assert differing == []


def test_a_number_with_a_noun_has_its_singular() -> None:
    """A plural of one message stands in no other one behind a plain number, but after `of`."""
    nouns = {many for text in TEMPLATES for many in PLURAL.findall(text)}
    assert "node" not in nouns and {"nodes", "sealed runs", "more lines"} <= nouns
    plain = re.compile(rf"(?<!of )\{{\w+\}} ({'|'.join(nouns)})\b")
    assert [text for text in TEMPLATES if plain.search(text)] == []
    assert Message("disturbed-more", nodes=1) == "and 1 more node"
    assert Message("disturbed-more", nodes=2) == "and 2 more nodes"


def test_ends_of_texts_that_are_joined_have_the_same_blanks(written: Catalog) -> None:
    for message in written:
        if isinstance(message.id, str) and message.id:
            text = str(message.string)
            assert (text[:1] == " ") == (message.id[:1] == " "), message.id
            assert (text[-1:] == " ") == (message.id[-1:] == " "), message.id


def test_korean_is_written_in_hangul(written: Catalog) -> None:
    texts = [str(message.string) for message in written if message.id]
    latin = [text for text in texts if not re.search(r"[가-힣]", text)]
    assert [text for text in latin if not SIGNS.fullmatch(text)] == []


def test_a_limit_has_one_korean_word(written: Catalog) -> None:
    """The verb "to limit" is another word. 기준 alone is the reference of a comparison."""
    others = re.compile(r"계약 기준|(?<!물리적 )(?<!하드웨어의 )한계|제한|기준을 벗어")
    for message in written:
        text = re.sub(r"\{\w+\}", "", f"{message.id}")
        if re.search(r"\blimits?\b(?! (?:it|this)\b)", text):
            assert "한도" in f"{message.string}", message.id
        assert not others.search(f"{message.string}".replace("삭제한", "")), message.id


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in (
            *sorted((PACKAGE / "report").rglob("*.py")),
            PACKAGE / "packages/twin/twin_page.py",
        )
        if path.parent.name not in ENGLISH_ROOMS
    ],
    ids=lambda path: path.stem,
)
def test_each_text_of_the_report_is_marked(path: Path) -> None:
    assert list(bare_texts(path.read_text(encoding="utf-8"))) == []


@pytest.mark.fault("text-without-mark")
def test_a_text_without_a_mark_is_found() -> None:
    path = PACKAGE / "report" / "sections" / "issues.py"
    code = path.read_text(encoding="utf-8")
    for marked in ('_("Issues")', 'N_("never started")', '_("Disturbed executions")'):
        bare = marked.partition("(")[2].rstrip(")")
        assert code.count(marked) == 1
        (found,) = bare_texts(code.replace(marked, bare))
        assert ast.literal_eval(bare) in found


def test_a_text_must_be_a_literal() -> None:
    assert list(catalogues.texts_of_code('_("one")')) == ["one"]
    with pytest.raises(ValueError, match="is not a literal text"):
        list(catalogues.texts_of_code("_(text)"))


def test_counted_nouns_are_extracted_with_their_plurals() -> None:
    head = "from proofmark.report.words import count\n"
    keys = list(
        catalogues.texts_of_code(f'{head}count(3, "step")\ncount(3, "process", "processes")')
    )
    assert keys == [
        ("{count} step", "{count} steps"),
        ("{count} process", "{count} processes"),
    ]
