"""The output of an execution, as a file of a run."""

from __future__ import annotations

from proofmark.common.message import NOTHING, Message
from proofmark.runs.attempts import Attempt
from proofmark.runs.binding_file import damage


def read_output_file(attempt: Attempt, name: str) -> tuple[bytes, Message]:
    """Return the content of the output `name`, and why it cannot be read, or `NOTHING`.

    A missing output is empty. The reader reports it.
    """
    try:
        return attempt.contents.read(name), NOTHING
    except FileNotFoundError:
        return b"", NOTHING
    except OSError as error:
        return b"", damage(name, error)
