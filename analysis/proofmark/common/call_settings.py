"""How a person sets a variable of a call: in the words of the command that prints them.

A playbook has ``-e accept_unjudged=true``; the command that it starts has ``--accept-unjudged``, as
a person who starts it has. No other command has either.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field


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
