"""No variable of Spack's own sources reaches Spack from the caller.

Needs ``PROOFMARK_SPACK``, a checkout at the pin.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from proofmark.software.spack.installation import SpackInstallation
from proofmark.software.spack.lock_make import lock_variables

pytestmark = pytest.mark.skipif("PROOFMARK_SPACK" not in os.environ, reason="needs Spack")


def names_of_spack() -> set[str]:
    """Return the names of variables in the programs and modules of Spack."""
    spack = Path(os.environ["PROOFMARK_SPACK"])
    names: set[str] = set()
    for folder, pattern in (("lib/spack/spack", "*.py"), ("share/spack", "*.sh"), ("bin", "*")):
        for path in (spack / folder).rglob(pattern):
            if path.is_file():
                names.update(
                    re.findall(r"\bSPACK_[A-Z_]+[A-Z]\b", path.read_text(errors="replace"))
                )
    return names


@pytest.mark.fault("spack-variables-of-the-user")
def test_no_variable_of_spack_itself_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = names_of_spack()
    assert {"SPACK_DISABLE_LOCAL_CONFIG", "SPACK_ENV", "SPACK_USER_CONFIG_PATH"} <= names
    for name in names:
        monkeypatch.delenv(name, raising=False)
    installation = SpackInstallation(tmp_path, tmp_path, tmp_path)
    before = installation.environment()
    own = lock_variables(installation, tmp_path)
    for name in names:
        monkeypatch.setenv(name, "/of/the/caller")
    assert installation.environment() == before
    assert lock_variables(installation, tmp_path) == own
    assert "/of/the/caller" not in installation.environment().values()
