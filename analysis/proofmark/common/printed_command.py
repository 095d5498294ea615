"""Commands that the kit prints, so that a person runs them, and the settings of a call.

That person can be root, and a file of a run can have any text of the run user. So a command has
constants of the code and parts with a form. A text without its form is in no command: a placeholder
stands for it, or the option is left out, and `PrintedCommand.left_out` names it.

A playbook has ``-e accept_unjudged=true``; the command that it starts has ``--accept-unjudged``, as
a person who starts it has. No other command has either.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

_CONSTANT = re.compile(r"-{0,2}[A-Za-z0-9][A-Za-z0-9_./=:-]*")
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}"
NAME = re.compile(_NAME)
"""The name of a run, a site, a partition, a suite or a kind of programs."""
PATH = re.compile(r"[\w.~/][\w.~/+@%:,-]*(?: [\w.~/][\w.~/+@%:,-]*)*")
"""The path of a file or folder; words of a path may have one blank between them."""
STEP = re.compile(rf"{_NAME}(?:/{_NAME}(?:\+{_NAME})?)?")
"""The id of a step, with the name of a node or of a pair."""
SCRIPT = re.compile(rf"{_NAME}(?:/{_NAME})*")
"""The path of a file of a run, from the current folder."""
LIMIT = re.compile(rf"{_NAME}(?:[,:]!?{_NAME})*")
"""A value of ``-l``: names of groups and hosts. No file (``@``) and no pattern is accepted."""
_STRANGE = re.compile(r"[^A-Za-z0-9_]")
_LONGEST_NAME = 64
MOST_LEFT_OUT = 10
"""The number of texts that a command names as left out."""


class CallVariable(NamedTuple):
    """A variable of a call of a playbook: ``-e NAME=VALUE``.

    Attributes:
        type: the name of its type in Ansible's argument specs.
        literal: the form of a value that a printed command repeats; None: it repeats none.
        of_plan: whether ``proofmark plan`` has an option of the same name, and a run keeps its
            value.
        mistake: returns what is accepted in place of a value; empty if it may be right.
        stage: the only stage that reads it, that of a playbook of its own; empty: any may.
    """

    type: str
    literal: re.Pattern[str] | None = None
    of_plan: bool = False
    mistake: Callable[[str], str] = lambda _: ""
    stage: str = ""


@dataclass(frozen=True)
class Part:
    """A word of a command that is no constant: `of_run` and `of_person` make it.

    Attributes:
        word: the text, if it has its form; else the placeholder; empty: option and word are left
            out of the command.
        option: the option before it; empty: none.
        left_out: what is named instead of a text without its form; empty for a text with it.
    """

    word: str
    option: str = ""
    left_out: str = ""


def of_run(text: str, form: re.Pattern[str], placeholder: str) -> Part:
    """Return a text that a run states; the placeholder stands for one without the whole `form`."""
    fits = form.fullmatch(text) is not None
    return Part(text) if fits else Part(placeholder, left_out=placeholder)


def of_person(text: object, placeholder: str, option: str = "") -> Part:
    """Return a text that the person gave to this command: a path, or the value of `option`.

    The placeholder stands for one that a terminal cannot show, and for one that reads as an option.
    """
    given = str(text)
    fits = given.isprintable() and bool(given) and not given.startswith("-")
    return Part(given, option) if fits else Part(placeholder, option, placeholder)


def without(option: str, name: str) -> Part:
    """Return the part of an `option` that is left out, which is named `name`."""
    return Part("", option, _STRANGE.sub("?", name[:_LONGEST_NAME]) or "?")


class PrintedCommand(str):
    """One command line with the quotes of a shell. It is made from its words only.

    Attributes:
        left_out: what stands in no command, at most `MOST_LEFT_OUT` names and an ellipsis.
    """

    left_out: tuple[str, ...]

    def __new__(cls, *words: str | Part) -> PrintedCommand:
        """Return the command of `words`: constants of the code, and parts.

        Raises:
            ValueError: a text is no constant of the code: it has to be a part.
        """
        line: list[str] = []
        missing: dict[str, None] = {}
        for word in words:
            if isinstance(word, Part):
                line += filter(None, (word.option if word.word else "", word.word))
                missing |= dict.fromkeys(filter(None, (word.left_out,)))
            elif _CONSTANT.fullmatch(word):
                line.append(word)
            else:
                raise ValueError(f"{word!r} is no constant: it has to be a part of the command")
        made = super().__new__(cls, shlex.join(line))
        names = tuple(missing)
        made.left_out = (*names[:MOST_LEFT_OUT], *(("…",) if len(names) > MOST_LEFT_OUT else ()))
        return made


@dataclass(frozen=True)
class Caller:
    """The command line of this process.

    Attributes:
        options: the options that the line could also have, each with whether it takes a value.
        by_playbook: whether a playbook started the command.
    """

    options: Mapping[str, bool] = field(default_factory=dict)
    by_playbook: bool = True


CALLER: ContextVar[Caller | None] = ContextVar("CALLER", default=None)
"""The command line that runs; without one a text is for a playbook."""


def setting(name: str, value: str = "true") -> str:
    """Return the words that set the variable `name` of a call to `value`."""
    caller, option = CALLER.get() or Caller(), option_of(name)
    if caller.by_playbook:
        return f"-e {name}={value}"
    if option in caller.options:
        return f"{option} {value}" if caller.options[option] else option
    return f"-e {name}={value} of ansible-playbook"


def option_of(name: str) -> str:
    """Return the option of commands that the variable `name` of a call sets."""
    return f"--{name.replace('_', '-')}"
