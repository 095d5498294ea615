"""The folders under which Spack can install: short ones, without blanks.

Spack begins a script whose first line is too long for the system with another first line, which
calls ``sbang`` in the root of the store. It refuses a store in which the path of ``sbang`` is
longer than the system allows (``hooks/sbang.py`` of Spack: `system_shebang_limit`), but only after
it has built the first package.
"""

from __future__ import annotations

from pathlib import Path

from proofmark.common.errors import bad_input

STORE = "store"
"""The folder of the installed specs, in the folder of Spack."""
SHEBANG_LIMIT = 127
"""Characters of a path that Linux accepts in the first line of a script, as Spack counts them."""
BELOW = f"/spack/{STORE}/bin/sbang"
"""The path of ``sbang`` below the folder of all installed programs."""
LONGEST = SHEBANG_LIMIT - len(BELOW)
"""Characters of the longest folder of all installed programs."""


def check_length(prefixes: Path) -> None:
    """Refuse a folder under which Spack cannot install.

    Args:
        prefixes: the folder of all installed programs, an absolute path.

    Raises:
        BadInput: its path is too long.
    """
    length = len(str(prefixes))
    if length > LONGEST:
        accepted = (
            f"at most {LONGEST} characters, because Spack's limit for {BELOW[1:]} below it is "
            f"{SHEBANG_LIMIT}; set provision_prefixes to a shorter folder that every node sees"
        )
        raise bad_input("provision_prefixes", "", f"{prefixes}, {length} characters", accepted)


def check_blanks(prefixes: Path) -> None:
    """Refuse a folder whose path configure and make would divide.

    Raises:
        BadInput: its path has a blank.
    """
    if any(letter.isspace() for letter in str(prefixes)):
        accepted = "a path without blanks; set provision_prefixes to a folder that every node sees"
        raise bad_input("provision_prefixes", "", f"{prefixes}", accepted)
