"""The commands in README.md, CONTRIBUTING.md and the pages of docs/, and checks of their words."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import yaml
from ansible.cli import CLI
from ansible.cli.galaxy import GalaxyCLI
from ansible.cli.playbook import PlaybookCLI
from tests.folders import BENCHMARKS, ROOT
from tests.key_pages import PAGES as KEY_PAGES
from tests.programs import BUILT_IN
from tests.rehearsal.faults import FAULTS

from proofmark.cli.parser import COMMANDS, STAGE, parser
from proofmark.site.extra_vars import call_variables
from proofmark.software.environments import FILES, environments_with

MADE = {page.name for page in KEY_PAGES}
"""Pages of docstrings, which name commands without their arguments."""
_PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/packages").glob("*.md")]
WRITTEN = [page for page in sorted(_PAGES) if page.name not in MADE]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
PROGRAMS = frozenset(
    {"ansible-galaxy", "ansible-playbook", "lstopo", "make", "proofmark", "pytest", "python", "sh"}
)
"""Programs whose commands within a sentence are commands of the page."""
ELLIPSIS = "…"
"""In a command: words that the page leaves out."""


@dataclass(frozen=True)
class Documented:
    """A command of a page.

    Attributes:
        page: the name of the page.
        line: its line there, from 1.
        text: the command, without its comment.
        in_sentence: whether it is in a sentence, not in a block.
    """

    page: str
    line: int
    text: str
    in_sentence: bool = False

    @property
    def words(self) -> list[str]:
        """The words of the command."""
        return shlex.split(self.text)

    @property
    def is_name(self) -> bool:
        """Whether a sentence only names a command of proofmark, without its arguments."""
        program, *words = self.words
        return self.in_sentence and program == "proofmark" and " ".join(words) in COMMANDS

    def __str__(self) -> str:
        """Return the place and the text."""
        return f"{self.page}:{self.line}: {self.text}"


def commands_in(page: Path) -> list[Documented]:
    """Return the commands of `page`: the lines of its sh blocks, and commands in its sentences.

    The name of a program or of a command alone (`make lint` has a target) is not a command.
    """
    text = page.read_text(encoding="utf-8")
    found: list[Documented] = []
    for block in FENCE.finditer(text):
        if block[1] == "sh":
            found += _lines(page.name, text.count("\n", 0, block.start(2)) + 1, block[2])
    outside = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for span in INLINE.finditer(outside):
        words = span[1].split()
        if words[0] in PROGRAMS and len(words) > 1:
            line = outside.count("\n", 0, span.start()) + 1
            found.append(Documented(page.name, line, " ".join(words), in_sentence=True))
    return sorted(found, key=lambda each: each.line)


def _lines(page: str, first: int, block: str) -> Iterator[Documented]:
    """Yield the commands of a block. A line that ends with a backslash continues in the next."""
    start, parts = first, ""
    for number, line in enumerate(block.splitlines(), first):
        start = start if parts else number
        parts += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        if words := shlex.split(parts, comments=True):
            text = _without_comment(parts) if "#" in parts else parts.strip()
            assert shlex.split(text) == words
            yield Documented(page, start, " ".join(text.split()))
        parts = ""


def _without_comment(line: str) -> str:
    """Return `line` up to the first # after which it has the same words."""
    words = shlex.split(line, comments=True)
    ends = (match.start() for match in re.finditer("#", line))
    cut = (line[:end].strip() for end in ends)
    return next(text for text in (*cut, line) if _split(text) == words)


def _split(text: str) -> list[str] | None:
    try:
        return shlex.split(text)
    except ValueError:  # The # is within quotes.
        return None


def wrong_words(command: Documented) -> list[str]:
    """Return what is wrong with the words of a command that no test executes; empty if nothing is.

    The options are those of the real parser, and the names are those of the repository.
    """
    program, *words = command.words
    return list(CHECKS.get(program, _other_program)(program, words))


def _parsed(parse: Callable[[], Namespace]) -> tuple[Namespace | None, str]:
    """Return the result of `parse`, a parser of arguments, or None and what it printed."""
    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            return parse(), ""
    except SystemExit:
        return None, said.getvalue()


def _proofmark(_: str, words: Sequence[str]) -> Iterator[str]:
    end = 1 + (words[0] == STAGE)
    command, options = words[:end], words[end:]
    if " ".join(command) in COMMANDS and all(re.fullmatch("--[a-z-]+", word) for word in options):
        # A sentence names a command and its options, without their values.
        usage = _parsed(lambda: parser().parse_args([*command, "--help"]))[1]
        yield from (f"no option {word}" for word in options if f"{word} " not in f"{usage} ")
        return
    parsed, text = _parsed(lambda: parser().parse_args(words))
    if parsed is None:
        yield text.strip().splitlines()[-1]
        return
    given = vars(parsed.called.options)
    yield from _site(given.get("inventory") or [], given.get("limit"))
    if given.get("suite"):
        yield from _known("suite", given["suite"], suites())


COLLECTION = "proofmark.kit"
"""The collection whose playbooks have names such as ``proofmark.kit.acceptance``."""


def _of_ansible(cli: CLI, words: Sequence[str]) -> tuple[Namespace | None, str]:
    """Return the options of a program of Ansible, or None and the last line that it printed."""
    cli.init_parser()
    options, text = _parsed(lambda: cli.parser.parse_args(words))
    return options, "" if options else text.strip().splitlines()[-1]


def _playbook(program: str, words: Sequence[str]) -> Iterator[str]:
    options, problem = _of_ansible(PlaybookCLI([program, *words]), words)
    if options is None:
        yield problem
        return
    for name in options.args:
        _, is_of_collection, short = name.partition(f"{COLLECTION}.")
        file = f"playbooks/{short}.yml" if is_of_collection else name
        if name != ELLIPSIS and not (ROOT / file).is_file():
            yield f"no playbook {name}"
    yield from _site(options.inventory or [], options.subset)
    for variable in options.extra_vars:
        name, _, value = variable.partition("=")
        if name not in call_variables():
            yield f"no extra variable {name}"
        elif name == "suite":
            yield from _known("suite", value, suites())


def _galaxy(program: str, words: Sequence[str]) -> Iterator[str]:
    options, problem = _of_ansible(GalaxyCLI([program, *words]), words)
    if options is None:
        yield problem


def _pip(program: str, words: Sequence[str]) -> Iterator[str]:
    """Let pip read the options: with ``--help`` it prints the help of the command."""
    command = [sys.executable, "-m", program, *words, "--help"]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        yield f"no command of pip {words[0]}"


def _site(inventories: Sequence[str], limit: str | None) -> Iterator[str]:
    """Yield an inventory that does not exist, and a limit that is no partition of it.

    Pages let their reader make the inventory mysite.
    """
    for name in inventories:
        if name == ELLIPSIS or Path(name).name == "mysite":
            continue
        if not (ROOT / name).is_dir():
            yield f"no inventory {name}"
        elif limit and limit not in (ELLIPSIS, "compute"):  # each inventory has this group
            yield from _known(f"partition of {name}", limit, _groups(ROOT / name))


def _make(_: str, words: Sequence[str]) -> Iterator[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([.\w-]+):(?!=)", text, re.MULTILINE)
    values: Mapping[str, Callable[[], Sequence[str]]] = {
        "SUITE": suites,
        "ARCH": lambda: [*environments_with(ROOT / "environments", *FILES), "all"],
        "FAULT": lambda: list(FAULTS),
        "LIMIT": lambda: list(_groups(ROOT / "inventory" / "rehearsal")),
    }
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            yield from _known("target", word, targets)
        elif not re.search(rf"\$[({{]{name}\b|^{name} \?=|\${{{name}", text, re.MULTILINE):
            yield f"the Makefile has no variable {name}"
        elif name in values and value not in ("", ELLIPSIS):
            yield from _known(name, value, values[name]())


def _python(_: str, words: Sequence[str]) -> Iterator[str]:
    option, module, *rest = words
    spec = importlib.util.find_spec(module) if option == "-m" else None
    if spec is None:
        yield f"no module {module}"
        return
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in folder.glob("*.py")]
    files += [Path(spec.origin)] if spec.origin and not folders else []
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    for word in rest:
        name = word.partition("=")[0]
        if name.startswith("--") and name != "--help" and f'"{name}"' not in source:
            yield f"no option {name} of {module}"


def _other_program(program: str, _: Sequence[str]) -> Iterator[str]:
    if program not in BUILT_IN and not program.startswith("$"):
        yield from _known("program of requirements/programs.yml", program, _programs())


CHECKS: Mapping[str, Callable[[str, Sequence[str]], Iterator[str]]] = {
    "ansible-galaxy": _galaxy,
    "ansible-playbook": _playbook,
    "make": _make,
    "pip": _pip,
    "proofmark": _proofmark,
    "python": _python,
}
"""The check of each program whose words are known here."""


def _known(what: str, word: str, words: Sequence[str]) -> Iterator[str]:
    if word not in words:
        yield f"no {what} {word}"


def suites() -> list[str]:
    """Return the names of the suites."""
    return list(_read(BENCHMARKS / "suites.yml")["suites"])


def _programs() -> list[str]:
    return list(_read(ROOT / "requirements/programs.yml")["programs"])


def _groups(inventory: Path) -> list[str]:
    return [path.stem for path in (inventory / "group_vars").iterdir()]


def _read(path: Path) -> dict[str, dict[str, object]]:
    data: dict[str, dict[str, object]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return data
