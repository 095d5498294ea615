"""``manifest.json``: the checksums of signed runs of format 1, which still verify."""

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
    """A file. The checksum of a symbolic link is the one of its target's name."""

    sha256: str
    bytes: int
    link: bool = False


class _OldManifest(StrictModel):
    algorithm: Literal["sha256"]
    run: str
    files: dict[str, _File]


def read_old_manifest(
    path: Path, folder: Path, present: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the checksums in ``manifest.json``, and those of `present` in the same form.

    Raises:
        BadInput: the manifest is damaged.
    """
    try:
        listed = _OldManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", "a manifest") from None
    links = {_name(name) for name in present if (folder / name).is_symlink()}
    now = {
        _name(name): _target(folder / name) if _name(name) in links else checksum
        for name, checksum in present.items()
        if name not in (OLD_MANIFEST, OLD_SIGNATURE)
    }
    return {name: each.sha256 for name, each in listed.files.items()}, now


def _name(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def _target(link: Path) -> str:
    return hashlib.sha256(os.fsencode(link.readlink())).hexdigest()
