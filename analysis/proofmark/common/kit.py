"""The folder of the kit, with its cases and environments, and the folder of its results.

The kit is a checkout, or the collection ``proofmark.kit`` that ``ansible-galaxy`` installed. Only
the collection has the file ``MANIFEST.json``, and only a checkout has ``galaxy.yml``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from proofmark import __version__
from proofmark.common.errors import bad_input
from proofmark.common.home import ansible_constants, expanded
from proofmark.common.trust import OWN_COPY, refuse_untrusted, refuse_untrusted_below

VARIABLE = "PROOFMARK_KIT"
"""The environment variable with the folder of the kit. The plays set it for their commands."""
SUITES = Path("benchmarks", "suites.yml")
PROGRAMS = ".provision"
"""The folder of the installed programs."""
PARTS = ("benchmarks", "environments", "requirements")
"""The folders whose files a command reads: cases, and the commands that install programs."""
COLLECTION = Path("ansible_collections", "proofmark", "kit")


def kit_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the kit.

    The first folder with cases of these is used: that of the variable `VARIABLE`, the current
    folder, the checkout or collection of this code, the collection that Ansible finds.

    Raises:
        BadInput: there is none, or it is a collection of another version than this package.
        Untrusted: another user can change it.
    """
    if given := environment.get(VARIABLE):
        if not _has_cases(Path(given)):
            accepted = f"a checkout, or the collection proofmark.kit: a folder with {SUITES}"
            raise bad_input(VARIABLE, "", given, accepted)
        return _own(Path(given).absolute())
    for folder in _candidates():
        if _has_cases(folder):
            return _own(folder)
    accepted = (
        f"a checkout as the current folder, the collection proofmark.kit in a path of "
        f"ANSIBLE_COLLECTIONS_PATH, or one of both in {VARIABLE}"
    )
    raise bad_input("the kit", "", f"no folder with {SUITES}", accepted)


def _has_cases(folder: Path) -> bool:
    try:
        return (folder / SUITES).exists()
    except OSError:  # a folder of another user
        return False


@cache
def _own(folder: Path) -> Path:
    """Return `folder`, a kit of this version that no other user can change.

    Raises:
        BadInput: as `kit_folder`.
    """
    accepted = f"{OWN_COPY}; another current folder, or {VARIABLE}, names another one"
    refuse_untrusted(folder, accepted)
    for name in PARTS:
        refuse_untrusted_below(folder / name, accepted)
    return _of_this_version(folder)


def _candidates() -> Iterator[Path]:
    yield Path.cwd()
    yield _folder_of_code()
    # Slow; only an installed package outside of a checkout needs it.
    for path in ansible_constants().COLLECTIONS_PATHS:
        yield Path(path) / COLLECTION


def _folder_of_code() -> Path:
    return Path(__file__).parents[3]


def code_folder() -> Path:
    """Return the checkout or collection with this code; for an installed package `kit_folder`.

    Raises:
        BadInput: as `kit_folder`.
    """
    folder = _folder_of_code()
    return folder if _has_cases(folder) else kit_folder()


def result_folder(kit: Path, name: str, given: str = "") -> Path:
    """Return the folder for one kind of results (``runs``, ``.provision``) as an absolute path.

    This is `given`. If `given` is empty, it is the folder `name` of the checkout, or of the current
    folder if `kit` is not a checkout: ``ansible-galaxy`` deletes the folder of a collection when it
    installs another version.

    Raises:
        Untrusted: it is that of the installed programs, and another user can change it.
    """
    if given:
        return expanded(Path(given)).absolute()
    folder = (kit if (kit / "galaxy.yml").exists() else Path.cwd()) / name
    if name == PROGRAMS:
        refuse_untrusted(folder, OWN_COPY)
    return folder


def _of_this_version(folder: Path) -> Path:
    """Return `folder`; refuse a collection of another version than this package.

    Raises:
        BadInput: the versions differ, or the manifest is unreadable.
    """
    manifest = folder / "MANIFEST.json"
    if not manifest.exists():
        return folder
    # It imports pydantic, which a completion in a checkout need not wait for.
    from proofmark.common.files import read_regular

    try:
        version = json.loads(read_regular(manifest))["collection_info"]["version"]
    except (ValueError, LookupError, TypeError) as error:
        raise bad_input(manifest, "", f"unreadable: {error}", "a collection") from None
    if version != __version__:
        accepted = f"{__version__}, that of the Python package; `pip install {folder}`"
        accepted += f" installs {version}"
        raise bad_input(manifest, "collection_info.version", version, accepted)
    return folder
