"""The state of the kit that wrote a file: its version and its commit.

It is apart from `proofmark.common.kit`: a completion imports that, and must not load pydantic.
"""

from __future__ import annotations

import subprocess
from functools import cache

from proofmark import __version__
from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder
from proofmark.common.strict_model import StrictModel


class Kit(StrictModel):
    """A state of the kit: its version, and the commit of its checkout; empty if that is not known.

    Attributes:
        version: of the Python package.
        commit: of the checkout, in hexadecimal digits.
    """

    version: str
    commit: str

    def __str__(self) -> str:
        """Return both in one text."""
        return f"{self.version}, commit {self.commit or 'not known'}"


@cache
def this_kit() -> Kit:
    """Return the state of this kit."""
    return Kit(version=__version__, commit=_commit())


def _commit() -> str:
    """Return the commit of the checkout of the kit; empty if it is no checkout, or without git."""
    try:
        command = ["git", "-C", f"{kit_folder()}", "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except (BadInput, OSError):
        return ""
    return done.stdout.strip() if not done.returncode else ""
