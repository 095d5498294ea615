"""Asks about a run with the rights of the owner of its folder.

The user who runs the benchmarks can write every file of a run. Code with the rights of root does
not open such a run (`proofmark.runs.run.open_run` refuses it). It asks a question: a function that
a process with only the rights of the owner executes. The answer is a strict model. The owner
controls that process, so the answer is data of the owner: the code that uses it compares it with
the inventory or with the kit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from proofmark.common.child_environment import of_another_user
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import one_line
from proofmark.runs.owner import Owner, foreign_owner, user_name
from proofmark.runs.run import open_run

Model = TypeVar("Model", bound=StrictModel)
_CODE = "import sys; from proofmark.runs.answer import print_reply; print_reply(*sys.argv[1:])"
MAX_BYTES = 2 << 30
"""The largest answer: the figures of thousands of nodes."""
_LONGEST = 300
"""The number of characters of an error of the other process that a message has."""


class _Mistake(StrictModel):
    file: str
    key: str
    found: str
    accepted: str


class _Reply(StrictModel):
    """What the other process prints: the JSON of the answer, or the reasons why there is none."""

    answer: str = ""
    mistakes: list[_Mistake] = []


def answer(folder: Path, question: Callable[..., Model], kind: type[Model], *words: str) -> Model:
    """Return the answer to `question` about the run in `folder`, with the rights of its owner.

    Args:
        folder: the folder of the run; a link to it is followed.
        question: a function of a module; its arguments are the run and `words`.
        kind: the model of the answer.
        words: further arguments.

    Raises:
        BadInput: the folder is no run, the question has no answer, or the answer has another form.
    """
    owner = foreign_owner(folder)
    if owner is None:
        return question(open_run(folder), *words)
    name = f"{question.__module__}:{question.__qualname__}"
    reply = _asked(owner, [name, f"{folder.resolve()}", *words])
    if reply.mistakes:
        raise BadInput(*(InputError(**each.model_dump()) for each in reply.mistakes))
    try:
        return kind.model_validate_json(reply.answer)
    except ValidationError as error:
        raise _no_answer(owner, f"{error}") from None


def _asked(owner: Owner, words: Sequence[str]) -> _Reply:
    """Return the reply of a process of `owner`. It gets no secret and no setting of root."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _CODE, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                env={**of_another_user(os.environ), "HOME": "/"},
                user=owner.user,
                group=owner.group,
                extra_groups=owner.groups,
            )
        except PermissionError:
            raise _no_answer(owner, f"that this user cannot start {sys.executable}") from None
        with process:
            assert process.stdout is not None
            text = process.stdout.read(MAX_BYTES + 1)
            if len(text) > MAX_BYTES:
                process.kill()
                raise _no_answer(owner, f"more than {MAX_BYTES} bytes")
        try:
            return _Reply.model_validate_json(text)
        except ValidationError:
            errors.seek(max(0, errors.tell() - _LONGEST))
            last = one_line(errors.read().decode(errors="replace"))
            raise _no_answer(owner, last or f"exit code {process.returncode}") from None


def _no_answer(owner: Owner, found: str) -> BadInput:
    accepted = f"an answer of a process of {user_name(owner.user)}, who can read the kit"
    return bad_input("RUN", "", found, accepted)


def print_reply(name: str, folder: str, *words: str) -> None:
    """Print the reply to the question `name` about the run in `folder`, as JSON.

    Args:
        name: ``<module>:<function>``.
        folder: the folder of the run.
        words: further arguments of the function.
    """
    module, _, function = name.partition(":")
    question: Callable[..., StrictModel] = getattr(import_module(module), function)
    try:
        reply = _Reply(answer=question(open_run(Path(folder)), *words).model_dump_json())
    except BadInput as error:
        mistakes = [
            _Mistake(file=each.file, key=each.key, found=each.found, accepted=each.accepted)
            for each in error.mistakes
        ]
        reply = _Reply(mistakes=mistakes)
    except OSError as error:
        accepted = f"a run that {user_name(os.geteuid())} can read"
        reply = _Reply(mistakes=[_Mistake(file="RUN", key="", found=f"{error}", accepted=accepted)])
    json.dump(reply.model_dump(), sys.stdout)
