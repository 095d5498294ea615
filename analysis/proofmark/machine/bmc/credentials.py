"""The user and password for BMCs. No message of this package contains the password."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofmark.common.errors import bad_input
from proofmark.common.json_text import parse_json

VARIABLES = ("PROOFMARK_BMC_USER", "PROOFMARK_BMC_PASSWORD")
HIDDEN = "***"


@dataclass(frozen=True)
class Credentials:
    """A user and a password."""

    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of the header ``Authorization`` (RFC 7617)."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def hide(self, text: str) -> str:
        """Return `text` without the password, plain or as in the header ``Authorization``.

        A BMC may quote a request in its error message.
        """
        for secret in (self.basic.removeprefix("Basic "), self.password):
            if secret:
                text = text.replace(secret, HIDDEN)
        return text


def credentials(content: bytes, secrets: Mapping[str, str]) -> Credentials:
    """Return the credentials in `content`, a JSON object, or else those of `secrets`.

    `secrets` are the variables that `take_secrets` took from the environment.

    Raises:
        BadInput: `content` has another format; the message does not quote it.
    """
    if not content.strip():
        return Credentials(*(secrets.get(name, "") for name in VARIABLES))
    try:
        values = parse_json(content)
        return Credentials(str(values["user"]), str(values["password"]))
    except (ValueError, KeyError, TypeError):
        accepted = '{"user": …, "password": …}'
        raise bad_input("--credentials", "", "another format (not shown)", accepted) from None
