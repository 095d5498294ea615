"""Each command of the README and of docs/*.md is executed, or its words are checked."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.documented import PAGES, Documented, commands_in, wrong_words
from tests.fixtures.kit import SYMBOLS, local_site, topology
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import DATA, ROOT

from proofmark.cli.main import main
from proofmark.packages.twin.smpi import unpack
from proofmark.plan.expansion import make_plan
from proofmark.site.machines import Machine

PAGE_COMMANDS = {page.name: commands_in(page) for page in PAGES}
TREATED: Mapping[str, Any] = yaml.safe_load((ROOT / "tests/documented.yml").read_text("utf-8"))
REPLACED: Mapping[str, list[str]] = TREATED["replaced"]
PATTERNS: Sequence[str] = [each for entry in TREATED["checked"] for each in entry["commands"]]
COPIED = ("Makefile", "acceptance.yml", "ansible.cfg", "environments", "playbooks", "plugins")
COPIED_FOLDERS = (*COPIED, "analysis", "benchmarks", "requirements", "roles", "spack-repo", "tests")
RUN = DATA / "runs" / "local-quick.tar.xz"


def is_checked(command: Documented) -> bool:
    """Return whether the words of the command are checked, and it is not executed."""
    return command.is_name or any(fnmatchcase(command.text, pattern) for pattern in PATTERNS)


ALL = [command for commands in PAGE_COMMANDS.values() for command in commands]
ONCE = ("check", "plan", "report", "trend")
"""Commands that no later command of a page needs: each is executed once with the same options."""


def options(command: Documented) -> tuple[str, ...]:
    """Return the name of a command of `ONCE` with those of its options; nothing of others."""
    program, *words = command.words
    if program != "proofmark" or words[0] not in ONCE or command.text in REPLACED:
        return ()
    return words[0], *sorted(word.split("=")[0] for word in words if word.startswith("-"))


def _suite(command: Documented) -> tuple[str, str] | None:
    """Return the site and the suite of a play in an example; None for other commands."""
    site = re.search(r" -i inventory/([\w-]+)", command.text)
    suite = re.search(r" -e suite=([\w-]+)", command.text)
    own = "provision_from=" in command.text
    return (site[1], suite[1]) if site and suite and not own else None


def divided() -> tuple[dict[str, list[Documented]], list[Documented]]:
    """Return the commands that are executed, by page, and those whose words are checked."""
    executed: dict[str, list[Documented]] = {page: [] for page in PAGE_COMMANDS}
    checked, seen = [], set()
    for command in ALL:
        again = "-o" not in command.words and options(command) in seen
        if is_checked(command) or again:
            checked.append(command)
            continue
        executed[command.page].append(command)
        if options(command):
            seen.add(options(command))
    return executed, checked


EXECUTED, CHECKED = divided()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a measured run; the archive has the verdict of an earlier state of the kit."""
    runs = tmp_path_factory.mktemp("measured")
    unpack(RUN, runs)
    (run,) = runs.iterdir()
    assert main(["report", f"{run}"]) == 0
    return run


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the checkout, which is the current folder."""
    kit = tmp_path / "kit"
    shutil.copytree(ROOT / "inventory", kit / "inventory")
    for name in COPIED_FOLDERS:
        (kit / name).symlink_to(ROOT / name)
    monkeypatch.setenv("EDITOR", "true")
    home = tmp_path / "home"  # the tutorial writes a key there
    home.mkdir()
    monkeypatch.setenv("HOME", f"{home}")
    monkeypatch.chdir(kit)
    return kit


@pytest.fixture
def copy(checkout: Path, measured: Path) -> Path:
    """Return a copy of the checkout with a measured run, and with a key."""
    kit = checkout
    for name in (measured.name, "before", "after"):
        shutil.copytree(measured, kit / "runs" / name)
    for name in ("latest-local", "twin-p595", "adopted-imported"):
        (kit / "runs" / name).symlink_to(measured.name)
    (kit / "topology.conf").write_text("SwitchName=s1 Nodes=node[001-004]\n", encoding="utf-8")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", kit / "key"], check=True)
    public = (kit / "key.pub").read_text(encoding="utf-8")
    (kit / "allowed_signers").write_text(f"site@example.org {public}", encoding="utf-8")
    return kit


def executed(text: str) -> int:
    """Execute a command in the current folder and return its exit code."""
    program, *words = shlex.split(text)
    if program != "proofmark":
        return subprocess.run(["sh", "-c", text], check=False, timeout=600).returncode
    try:
        return main(words)
    except SystemExit as stopped:  # --help
        return int(stopped.code or 0)


@pytest.mark.rest("all commands of all pages")
@pytest.mark.parametrize("page", [page for page, commands in EXECUTED.items() if commands])
def test_the_commands_of_a_page_run(
    copy: Path, capfd: pytest.CaptureFixture[str], page: str
) -> None:
    """They run in the order of the page. A page that does not make the site mysite has it."""
    if not any("inventory/template" in command.words for command in EXECUTED[page]):
        shutil.copytree(copy / "inventory" / "template", copy / "inventory" / "mysite")
    for command in EXECUTED[page]:
        for text in REPLACED.get(command.text, [command.text]):
            code = executed(text)
            printed, said = capfd.readouterr()
            assert code == 0, f"{command}: {text}: exit code {code}: {said}{printed[-500:]}"


def test_the_words_of_all_other_commands_exist() -> None:
    assert [f"{each}: {wrong}" for each in CHECKED for wrong in wrong_words(each)] == []


def test_make_has_the_commands_of_the_pages(checkout: Path) -> None:
    """A sentence may name a target alone, without the architecture that the target needs."""
    texts = dict.fromkeys(each.text for each in CHECKED if each.words[0] == "make")
    assert [text for text in texts if executed(f"ARCH=knl {text} --dry-run")] == []
    assert len(texts) > 10


def test_the_step_of_the_readme_is_a_step_of_its_suite(checkout: Path) -> None:
    """`make acceptance` runs the suite quick on the site local; the id is the same everywhere."""
    (name,) = {step for each in ALL for step in re.findall(r"steps/(\d{4}-\S+)/run.sh", each.text)}
    for cores in (2, 64):
        site = local_site(checkout / "inventory/local", checkout / "scratch")
        machine = Machine({**SYMBOLS, "cores": cores}, topology(cores))
        made = make_plan(shipped_benchmarks(), "quick", site, machine)
        assert name in {step.id for step in made.steps()}


@pytest.mark.rest("it makes a plan for each example")
@pytest.mark.parametrize(("name", "suite"), sorted({*filter(None, map(_suite, ALL))}))
def test_the_suite_of_an_example_lacks_no_program(
    checkout: Path, capfd: pytest.CaptureFixture[str], name: str, suite: str
) -> None:
    """The site of the examples is one that `proofmark init` writes for Debian, as the template."""
    site = "template" if name == "mysite" else name
    assert main(["check", "-i", f"inventory/{site}", "--suite", suite]) == 0, capfd.readouterr()


def test_each_listed_command_is_on_a_page_and_has_a_reason() -> None:
    texts = [command.text for command in ALL]
    assert [text for text in REPLACED if text not in texts] == []
    unused = [each for each in PATTERNS if not any(fnmatchcase(text, each) for text in texts)]
    assert unused == []
    for entry in TREATED["checked"]:
        assert entry.keys() == {"commands", "reason"}
        assert entry["reason"]


def test_a_replaced_command_is_the_command_of_the_page() -> None:
    for text, replacements in REPLACED.items():
        before, after = shlex.split(text), shlex.split(replacements[-1])
        kept = [word for word in before if word.islower() and "<" not in word]
        assert [word for word in after if word in kept] == kept


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("proofmark rerum runs/latest-local 3", "found the command 'rerum'"),
        ("proofmark adopt --argumentz", "no option --argumentz"),
        ("proofmark rerun runs/latest-local 3 --again", "found '--again'"),
        ("proofmark plan -i inventory/nurion -l kln --suite p2", "no partition of inventory/nu"),
        ("proofmark plan -i inventory/nurion -l knl --suite p9", "no suite p9"),
        ("proofmark plan -i inventory/nurio -l knl", "no inventory inventory/nurio"),
        ("ansible-playbook playbooks/preflite.yml -i …", "no playbook playbooks/preflite.yml"),
        ("ansible-playbook proofmark.kit.aceptance -i …", "no playbook proofmark.kit.aceptance"),
        ("ansible-playbook acceptance.yml -i … -e suit=p1", "no extra variable suit"),
        ("ansible-playbook acceptance.yml -i … -e suite=p9", "no suite p9"),
        ("ansible-playbook acceptance.yml --chek", "unrecognized arguments: --chek"),
        ("ansible-galaxy collection biuld", "invalid choice: 'biuld'"),
        ("pip instal FOLDER", "no command of pip instal"),
        ("make tests", "no target tests"),
        ("make lock ARHC=knl", "the Makefile has no variable ARHC"),
        ("make lock ARCH=knll", "no ARCH knll"),
        ("make rehearsal FAULT=bmc-wrong-pasword", "no FAULT bmc-wrong-pasword"),
        ("make rehearsal SUITE=p9", "no SUITE p9"),
        ("python -m proofmark.cli.spaklock check", "no module proofmark.cli.spaklock"),
        ("python -m tests.emulators.bmc --folders DIR", "no option --folders of"),
        ("gpgg --armor", "no program of requirements/programs.yml gpgg"),
    ],
)
def test_a_wrong_word_of_a_command_is_found(text: str, wrong: str) -> None:
    (found,) = wrong_words(Documented("page.md", 1, text))
    assert wrong in found


def test_the_commands_of_a_page_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Run `proofmark cases --check`, then `make`; `verdict: x` is no command.\n"
        "```sh\n"
        "make lint   # checks\n"
        "# a comment\n"
        "proofmark adopt 'a # b' \\\n"
        "  c\n"
        "```\n"
        "```yaml\n"
        "make: test\n"
        "```\n"
        "`make\n"
        "test`\n",
        encoding="utf-8",
    )
    found = [(each.line, each.text) for each in commands_in(page)]
    read = (5, "proofmark adopt 'a # b' c")
    assert found == [(1, "proofmark cases --check"), (3, "make lint"), read, (11, "make test")]


@pytest.mark.rest("it executes commands of a page")
def test_a_new_command_is_executed_unless_it_is_listed(
    copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The pattern of no other command matches it, and a wrong one fails."""
    assert not is_checked(Documented("page.md", 1, "proofmark trend runs/latest-local"))
    assert executed("proofmark plan -i inventory/mysite -l cluster") == 3
    assert "no inventory inventory/mysite" in capfd.readouterr().err
    assert executed("no-such-program") != 0
