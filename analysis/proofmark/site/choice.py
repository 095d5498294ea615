"""The chosen site: a link in the checkout that names the inventory of commands without ``-i``.

``ansible.cfg`` of the checkout names the link. ``proofmark site`` sets it, and git ignores it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from proofmark.common.errors import BadInput, bad_input, nearest
from proofmark.common.kit import ansible_constants
from proofmark.common.trust import OWN_COPY, refuse_untrusted, refuse_untrusted_below

LINK = "site"
"""The link, in the folder of the checkout."""
BESIDE_HOSTS = ("locks", "baselines", "allowed_signers", "contract.yml")
"""Files of a site that are no inventory of Ansible (``ignore_patterns`` of ansible.cfg)."""
DEFAULT = "/etc/ansible/hosts"
"""The inventory that Ansible reads if no setting names one."""


def chosen_site(kit: Path) -> Path:
    """Return the folder of the chosen site.

    Args:
        kit: the folder of the checkout or of the collection.

    Raises:
        BadInput: no site is chosen, or its folder does not exist.
        Untrusted: another user can change the link.
    """
    link = kit / LINK
    if not link.is_symlink():
        raise _none_chosen(kit)
    refuse_untrusted(link, OWN_COPY)
    folder = kit / link.readlink()
    if not folder.is_dir():
        found = f"a link to {folder}, which is no folder"
        raise bad_input(link, "", found, f"`make site SITE=<site>` with one of {_names(kit)}")
    return folder


def choose_site(kit: Path, folder: Path) -> None:
    """Make `folder` the chosen site of a checkout.

    Raises:
        BadInput: `folder` does not exist, `kit` is no checkout, or something else has the name of
            the link.
    """
    if not folder.is_dir():
        hint = nearest(folder.name, _sites(kit))
        raise bad_input("SITE", "", f"no folder {folder}{hint}", f"one of {_names(kit)}")
    link, target = kit / LINK, folder.resolve()
    if not (kit / "ansible.cfg").exists():
        raise bad_input(kit, "", "no checkout", "a checkout; elsewhere -i names the site")
    if link.exists() and not link.is_symlink():
        raise bad_input(link, "", "a file or folder", "no file, or a link to the chosen site")
    inside = target.is_relative_to(kit.resolve())
    new = kit / f".{LINK}.{os.getpid()}"
    new.symlink_to(target.relative_to(kit.resolve()) if inside else target)
    new.replace(link)


def refuse_sources(sources: Sequence[str], kit: Path, config: str) -> None:
    """Refuse inventories of Ansible that are not one site.

    Args:
        sources: the inventories of a play, as Ansible names them.
        kit: the folder of the checkout or of the collection.
        config: the ansible.cfg that Ansible reads; empty if there is none.

    Raises:
        BadInput: the reason, and what names one site.
        Untrusted: another user can change the inventory, or what Ansible has read before.
    """
    ansible_constants()
    if len(sources) != 1 or "," in sources[0]:
        found = f"{len(sources)} sites ({', '.join(sources)})"
        if len(sources) == 1:
            found = f"{sources[0]!r}, a list of hosts"
        raise bad_input("-i", "", found, "exactly one site, a folder: -i inventory/<site>")
    path = Path(sources[0])
    if path.exists():
        refuse_foreign_site(path)
        return
    named = path.name == LINK and path.parent.resolve() == kit.resolve()
    if named or path == Path(DEFAULT):
        site = chosen_site(kit)
        read = config or "no ansible.cfg"
        found = f"no site: Ansible reads {read}, and not the file of the checkout"
        accepted = f"-i {site}, or ANSIBLE_CONFIG={kit / 'ansible.cfg'} for the chosen site"
        raise bad_input("-i", "", found, accepted)
    raise missing_inventory(path)


def refuse_foreign_site(source: Path) -> None:
    """Refuse an inventory that another user can change: Ansible executes what it states.

    Args:
        source: what Ansible reads: the folder of the site, or one file in it.

    Raises:
        Untrusted: it names the file.
    """
    refuse_untrusted_below(source, OWN_COPY)
    if source.is_file():
        for name in ("group_vars", "host_vars", *BESIDE_HOSTS):
            refuse_untrusted_below(source.parent / name, OWN_COPY)


def missing_inventory(path: Path) -> BadInput:
    """Return the error of an inventory that does not exist."""
    names = sorted(each.name for each in path.parent.glob("*") if each.is_dir())
    hint = nearest(path.name, names)
    return bad_input("-i", "", f"no inventory {path}{hint}", ", ".join(names) or "a folder")


def _none_chosen(kit: Path) -> BadInput:
    accepted = "exactly one site: -i inventory/<site>"
    if (kit / "ansible.cfg").exists():
        accepted += f", or `make site SITE=<site>` in {kit}, which chooses one of {_names(kit)}"
    return bad_input("-i", "", "no site, and none is chosen", accepted)


def _names(kit: Path) -> str:
    return ", ".join(_sites(kit)) or "the folders of inventory/"


def _sites(kit: Path) -> list[str]:
    return sorted(path.name for path in Path(kit, "inventory").glob("*") if path.is_dir())
