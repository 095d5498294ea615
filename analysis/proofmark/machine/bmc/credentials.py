"""Who we are to a BMC. The password is in no text that this package makes."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofmark.common.errors import bad_input

VARIABLES = ("PROOFMARK_BMC_USER", "PROOFMARK_BMC_PASSWORD")
HIDDEN = "***"


@dataclass(frozen=True)
class Credentials:
    """A user and a password."""

    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of the header ``Authorization``."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def hide(self, text: str) -> str:
        """Return `text` without the password, as it is or as it goes over the line.

        A BMC may put what it was sent into the message in which it complains.
        """
        for secret in (self.basic.removeprefix("Basic "), self.password):
            if secret:
                text = text.replace(secret, HIDDEN)
        return text


def credentials(text: str = "", environment: Mapping[str, str] = os.environ) -> Credentials:
    """Read `text`, a JSON object of user and password, or else the environment.

    Raises:
        BadInput: it is not that; the message holds nothing of it.
    """
    if not text.strip():
        return Credentials(*(environment.get(name, "") for name in VARIABLES))
    try:
        told = json.loads(text)
        return Credentials(str(told["user"]), str(told["password"]))
    except (ValueError, KeyError, TypeError):
        accepted = '{"user": …, "password": …}'
        raise bad_input("--credentials", "", "something else (not shown)", accepted) from None
