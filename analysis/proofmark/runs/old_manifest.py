"""``manifest.json``: how runs of format 1 were signed; such a run still verifies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from proofmark.common.errors import bad_input
from proofmark.common.strict_model import StrictModel

OLD_MANIFEST, OLD_SIGNATURE = "manifest.json", "manifest.json.sig"


class _File(StrictModel):
    """One file; of a symbolic link the name of its target."""

    sha256: str
    bytes: int
    link: bool = False


class _OldManifest(StrictModel):
    algorithm: Literal["sha256"]
    run: str
    files: dict[str, _File]


def read_old_manifest(
    path: Path, folder: Path, there: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the checksums that ``manifest.json`` lists, and those of `there` in its form.

    Raises:
        BadInput: it is damaged.
    """
    try:
        listed = _OldManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", "a manifest") from None
    links = {_name(name) for name in there if (folder / name).is_symlink()}
    now = {
        _name(name): _target(folder / name) if _name(name) in links else checksum
        for name, checksum in there.items()
        if name not in (OLD_MANIFEST, OLD_SIGNATURE)
    }
    return {name: each.sha256 for name, each in listed.files.items()}, now


def _name(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def _target(link: Path) -> str:
    return hashlib.sha256(os.fsencode(link.readlink())).hexdigest()
