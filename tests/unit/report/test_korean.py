"""The report in Korean: no English text is left on the page, and files for programs stay equal."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from gettext import GNUTranslations, NullTranslations
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.pages import assert_sound
from tests.fixtures.report_run import page_of, troubled_run
from tests.reference import archives

from proofmark.cli.main import main
from proofmark.common import translation
from proofmark.common.errors import BadInput
from proofmark.common.message import Message, Term, joined, localized
from proofmark.common.translation import in_language, with_particles
from proofmark.judge.baseline import Compared
from proofmark.judge.change_limits import Limits
from proofmark.judge.confidence import too_noisy
from proofmark.judge.ending import ending
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.packages.foreign.adopted_outputs import REASONS
from proofmark.packages.papers import charts
from proofmark.packages.twin.smpi import unpack
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import next_steps
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, open_run, site_of
from proofmark.site.hardware_limits import processor, typical_shares
from proofmark.site.installed_parts import Parts, missing_parts

ROW = re.compile(r"[A-Za-z][\w']+(?: [A-Za-z][\w']+)+", re.ASCII)
"""Two or more Latin words in a row."""
VOID = {"meta", "path", "use", "br", "link", "img", "input"}
HIDDEN = {"style", "code", "pre"}
NAME = re.compile(r"[A-Z].*|.*[\d_].*")
"""A word of a name: it begins with a capital letter, or has a digit."""


class Texts(HTMLParser):
    """The visible texts of a page in its language, each with its place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.found: list[str] = []
        self.language = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "html":
            self.language = given.get("lang") or ""
        other = given.get("lang", self.language) != self.language
        code = "code" in (given.get("class") or "").split()
        self.found += [value for name in ("aria-label", "data-label") if (value := given.get(name))]
        if tag not in VOID:
            self.open.append((tag, other or code or tag in HIDDEN))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(hidden for _, hidden in self.open):
            self.found.append(" ".join(data.split(" ")))


def values_of(document: object) -> Iterator[str]:
    """Yield the texts and keys in a JSON document."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, list):
        for each in document:
            yield from values_of(each)
    elif isinstance(document, dict):
        for key, each in document.items():
            yield f"{key} {each}"
            yield from values_of(each)


def data_of(run: Run, verdict: Verdict) -> set[tuple[str, str]]:
    """Return the pairs of words that the data of a run have: facts, names, the contract."""
    texts: list[str] = []
    for path in (run.files.plan, run.files.software):
        texts += values_of(json.loads(path.read_bytes()))
    texts += values_of(site_of(run).model_dump(mode="json")["contract"])
    for node in nodes_of(run).values():
        texts += values_of(node.model_dump(mode="json"))
        row = processor(node.newest.cpu_model) if node.jobs else None
        for of_processor in typical_shares(row, "hpl") if row else ():
            texts += [f"{node.newest.cpu_model} {of_processor.conditions.system}"]
    for result in verdict.results:
        record = result.record
        texts.append(f"{record.case} {record.benchmark} {record.metric}")
        texts.append(f"{record.case} {record.metric}")
        texts += [judgement.source for judgement in result.references]
    return {pair for text in texts for pair in pairwise(re.findall(r"[A-Za-z][\w']+", text))}


def english(page: str, data: set[tuple[str, str]]) -> list[str]:
    """Return the English texts of a page in another language that are not data."""

    def known(pair: tuple[str, str]) -> bool:
        return pair in data or all(NAME.fullmatch(word) for word in pair) or "_" in "".join(pair)

    return [
        text
        for text in Texts(page).found
        if not all(known(pair) for row in ROW.findall(text) for pair in pairwise(row.split()))
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    made = troubled_run(tmp_path_factory.mktemp("korean"))
    return made, written_verdict(made)


@pytest.fixture(scope="module")
def korean(run: tuple[Run, Verdict]) -> dict[str, str]:
    """Return the texts of the report in Korean, of its plots and of the files for programs."""
    made, verdict = run
    with in_language("ko"):
        page_of(made, verdict, drawn=True)
    return written(made)


def written(run: Run) -> dict[str, str]:
    names = ("report.html", "verdict.json")
    paths = [run.folder / name for name in names]
    paths += [path for path in run.folder.glob("figures/*") if path.suffix in (".svg", ".csv")]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_the_page_has_no_english_text(run: tuple[Run, Verdict], korean: dict[str, str]) -> None:
    page = korean["report.html"]
    assert_sound(page, "ko")
    assert Texts(page).language == "ko"
    assert english(page, data_of(*run)) == []


@pytest.mark.fault("text-without-translation")
def test_a_text_without_a_translation_is_found(
    run: tuple[Run, Verdict], korean: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Figures that are FAIL or INVALID"
    whole = translation._catalogue("ko")
    assert isinstance(whole, GNUTranslations)

    class Lacking(NullTranslations):
        def gettext(self, message: str) -> str:
            return message if message == text else whole.gettext(message)

        def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
            return whole.ngettext(msgid1, msgid2, n)

    monkeypatch.setattr(translation, "_catalogue", lambda _: Lacking())
    with in_language("ko"):
        lacking = page_of(*run)
    assert english(lacking, data_of(*run)) == [text, text]  # a title, and a caption


def test_no_sentence_is_broken(korean: dict[str, str]) -> None:
    """A noun form has no second ending, and a particle follows the sound before it."""
    words = " ".join(Texts(korean["report.html"]).found)
    assert re.findall(r"\S*[음함됨임]입니다", words) == []
    assert re.findall(r"[가-힣0-9](?:\(으\)|[이을은과]\([가를는와]\))", words) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1개이(가)", "1개가"),
        ("노드이(가)", "노드가"),
        ("값을(를)", "값을"),
        ("0.3.21이(가)", "0.3.21이"),
        ("2은(는)", "2는"),
        ("10(으)로", "10으로"),
        ("7(으)로", "7로"),
        ("파일(으)로", "파일로"),
        ("이름과(와)", "이름과"),
        ("root이(가)", "root이(가)"),
    ],
)
def test_a_particle_follows_the_sound_before_it(text: str, shown: str) -> None:
    with in_language("ko"):
        assert with_particles(text) == shown
    assert with_particles(text) == text


def test_each_verdict_has_its_korean_and_its_english_word(korean: dict[str, str]) -> None:
    texts = Texts(korean["report.html"]).found
    for word, in_korean in zip(WORDS, ("합격", "불합격", "무효", "미판정"), strict=True):
        assert f"{in_korean} ({word})" in texts
        assert f'class="word {word}"' in korean["report.html"]


def test_a_bad_node_has_its_next_step_in_korean(tmp_path: Path) -> None:
    rates = {f"n{number:02d}": 100.0 + number % 3 for number in range(1, 13)}
    made = fleet_run(tmp_path, {**rates, "n07": [60.0, 60.5]})
    data = gather(made, written_verdict(made))
    (step,) = next_steps(data)
    with in_language("ko"):
        (in_korean,) = next_steps(data)
    assert (step.word, step.nodes, step.command) == ("FAIL", "n07", in_korean.command)
    assert in_korean.action == "rma.csv를 공급사에 보내고, 수리 후 다시 측정하십시오."


def test_files_for_programs_do_not_depend_on_the_language(
    run: tuple[Run, Verdict], korean: dict[str, str]
) -> None:
    page_of(*run, drawn=True)
    in_english = written(run[0])
    texts = {name for name in in_english if name.endswith((".html", ".svg"))}
    assert in_english.keys() - texts
    assert {name: in_english[name] for name in in_english.keys() - texts} == {
        name: korean[name] for name in korean.keys() - texts
    }
    assert '<html lang="en">' in in_english["report.html"]
    assert not [name for name in texts if re.search(r"[가-힣]|<span lang", in_english[name])]


def test_plots_are_in_korean(korean: dict[str, str]) -> None:
    """A glyph that no font has would be a warning, and a warning is an error."""
    plots = [text for name, text in korean.items() if name.endswith(".svg")]
    assert plots
    assert all(re.search(r"<text[^>]*>[^<]*[가-힣]", text) for text in plots)


@pytest.mark.fault("language-without-font")
def test_a_missing_font_is_named(run: tuple[Run, Verdict], monkeypatch: pytest.MonkeyPatch) -> None:
    charts._fonts_with_hangul.cache_clear()
    monkeypatch.setattr(charts, "find_spec", lambda package: None)
    with in_language("ko"), pytest.raises(BadInput, match=r"package koreanize-matplotlib"):
        page_of(*run)
    page_of(*run)  # a report in English needs no such font


def test_an_unknown_language_is_refused(
    run: tuple[Run, Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(run[0].folder), "--language", "kr"]) == 3
    expected = "--language: found 'kr', did you mean 'ko'?; accepted: en, ko"
    assert expected in capsys.readouterr().err


def test_the_last_lines_are_korean_only_if_wanted(run: tuple[Run, Verdict]) -> None:
    verdict = run[1]
    in_english = ending(verdict, "report.html", "runs/r")
    with in_language("ko"):
        in_korean = ending(verdict, "report.html", "runs/r")
    assert not any(re.search(r"[가-힣]", line) for line in in_english)
    assert in_korean[0].startswith("무효 (INVALID): 계약 한도 1개 중 0개 충족; ")
    assert in_korean[2].startswith("보고서: report.html; 다음: ")
    assert [re.findall(r"proofmark \w+", line) for line in in_korean] == [
        re.findall(r"proofmark \w+", line) for line in in_english
    ]


OWN, LIKE = Term("the same node in the baseline"), Term("the like nodes in the baseline")


def against(code: str, ratio: str, name: Term, **fields: str) -> Message:
    """Return the comparison of a run with a baseline."""
    return Message(code, ratio=ratio, name=name, value="12.3", **fields)


NOISE = {"noise": "1.2", "change": "3"}
MESSAGES = [
    (
        Message("least-missed", ratio="0.93", name="rpeak_avx", value="1200 Gflops", limit="0.95"),
        "rpeak_avx(1200 Gflops)의 0.93배: 0.95 이상을 충족하지 않음",
    ),
    (
        Message(
            "bounds-missed",
            ratio="0.639",
            name=Message("figure-contract"),
            value="9000 Mbytes/sec",
            limit="1",
            upper="2",
        ),
        "계약 값(9000 Mbytes/sec)의 0.639배: 1 이상 2 이하를 충족하지 않음",
    ),
    (
        joined(
            [
                Message(
                    "of-repeats",
                    repeats=3,
                    text=Message("most-met", ratio="1.1", name="copy", value="5 MB/s", limit="2"),
                ),
                Message("repeats-left-out", disturbed=1, repeats=4),
            ]
        ),
        "반복 3회의 중앙값: copy(5 MB/s)의 1.1배: 2 이하를 충족; 방해받은 반복 1회 제외 (전체 4회)",
    ),
    (
        against("baseline-noise", "0.8", OWN, **NOISE),
        "기준 시험의 같은 노드(12.3)의 0.8배; 값의 잡음 1.2 %, 3 %의 변화부터 검출",
    ),
    (
        joined([against("baseline-noise", "1.2", LIKE, **NOISE), Message("improved")]),
        "기준 시험의 동종 노드(12.3)의 1.2배; 값의 잡음 1.2 %, 3 %의 변화부터 검출; 좋아짐",
    ),
    (
        against("baseline-once", "1", LIKE),
        "기준 시험의 동종 노드(12.3)의 1배: 한 번만 측정되어 잡음을 알 수 없음",
    ),
    (
        against("baseline-noisy", "1", OWN, noise=too_noisy(0.62, 0.1, 14)),
        "기준 시험의 같은 노드(12.3)의 1배, 잡음이 너무 큼: 62 %까지의 차이는 검출되지 않음, "
        "중요한 변화는 10 %; 약 14회의 반복이 필요",
    ),
    (
        against("baseline-noisy", "1", OWN, noise=too_noisy(0.62, 0.1, math.inf)),
        "기준 시험의 같은 노드(12.3)의 1배, 잡음이 너무 큼: 62 %까지의 차이는 검출되지 않음, "
        "중요한 변화는 10 %; 반복을 1000회까지 늘려도 부족함",
    ),
    (
        joined([against("baseline-noise", "1", OWN, **NOISE), Message("baseline-no-program")]),
        "기준 시험의 같은 노드(12.3)의 1배; 값의 잡음 1.2 %, 3 %의 변화부터 검출; 수치의 "
        "프로그램이 기록되지 않음",
    ),
    (
        joined(
            [
                Message("packets-lost", share="1 %", usual="0 %", nodes=4),
                Message(
                    "hardware-accepted",
                    text=(
                        Message("lost-memory_bytes", found="1.0 GiB", accepted="2.0 GiB"),
                        Message("lost-dimms", found=3, accepted=4),
                    ),
                ),
            ]
        ),
        "포트 또는 케이블이 패킷을 잃습니다: TCP 세그먼트의 1 %를 다시 전송했습니다. 노드 "
        "4개의 중앙값은 0 %입니다; 승인된 시험보다 하드웨어가 적음: 메모리: 1.0 GiB, 승인된 "
        "값 2.0 GiB; 메모리 모듈(DIMM): 3, 승인된 값 4",
    ),
]


@pytest.mark.parametrize(("message", "korean"), MESSAGES)
def test_a_message_is_in_the_language_of_the_page(message: Message, korean: str) -> None:
    with in_language("ko"):
        assert localized(message) == korean
    assert localized(message) == message


@pytest.mark.parametrize("reason", REASONS.values())
def test_the_reasons_of_imported_figures_are_translated(reason: Message) -> None:
    with in_language("ko"):
        assert re.search(r"[가-힣]", localized(reason))


@pytest.mark.parametrize("proved", [True, False])
@pytest.mark.parametrize(
    "name", ["the same node in the baseline", "the like nodes in the baseline"]
)
def test_the_judgements_of_a_baseline_are_translated(name: str, proved: bool) -> None:
    change = np.array([0.0, 0.2, -0.2, 0.0, 0.0])  # equal, worse, better, unclear, not known
    largest = np.array([0.03, 0.03, 0.03, 3.0, math.nan])
    ones = np.ones(5)
    limits = Limits(
        figure=np.arange(5.0),
        reference=ones,
        change=change,
        noise=0.01 * ones,
        error=0.01 * ones,
        freedom=100 * ones,
        lower=ones,
        material=0.1 * ones,
        per_repeat=0.0001 * ones,
        repeats=ones,
        count=ones,
    )
    compared = Compared(name, limits, largest, proved)
    judgements = [
        compared.judgement(place, Message("baseline-run", name="first", run="run"))
        for place in range(5)
    ]
    outcomes = ["PASS", "FAIL", "PASS", "UNJUDGED", "UNJUDGED"]
    unproved = [each if each == "FAIL" else "UNJUDGED" for each in outcomes]
    assert [each.outcome for each in judgements] == (outcomes if proved else unproved)
    with in_language("ko"):
        texts = [text for each in judgements for text in (each.reason, each.source)]
        assert [text for text in texts if not re.search(r"[가-힣]", localized(text))] == []


def test_lost_hardware_has_a_message() -> None:
    before: dict[str, Any] = {
        "cores": 8,
        "sockets": 2,
        "numa": 2,
        "memory_bytes": 2**34,
        "dimms": 4,
    }
    after = Parts(**{name: number // 2 for name, number in before.items()}, ports=(100.0,))
    lost = missing_parts(Parts(**before, ports=(100.0,) * 2), after)
    assert {each.code for each in lost.values()} == {f"lost-{name}" for name in (*before, "ports")}


def test_values_in_a_message_are_not_translated() -> None:
    with in_language("ko"):
        message = Message("killed", signal="{0.__class__} %s")
        assert localized(message) == "{0.__class__} %s 신호로 종료됨"


@pytest.mark.parametrize("archive", archives(), ids=lambda path: path.name.partition(".")[0])
def test_the_reasons_of_a_reference_run_are_translated(archive: Path, tmp_path: Path) -> None:
    unpack(archive, tmp_path)
    (folder,) = tmp_path.iterdir()
    verdict = read_and_judge(open_run(folder))[1]
    found = {each.reason for each in verdict.results if each.reason}
    found |= {node.likely for node in verdict.bad.nodes}
    found |= {*verdict.unmet, *verdict.coverage.stopped}
    assert found
    with in_language("ko"):
        left = [each for each in found if not re.search(r"[가-힣]", localized(each))]
    assert left == []
