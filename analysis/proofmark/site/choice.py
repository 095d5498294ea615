"""What a user chooses: the site of commands without ``-i``, and the hosts of ``-l``.

The chosen site is a link in the checkout. ``ansible.cfg`` names the link, ``proofmark site`` sets
it, and git ignores it.

The pattern of ``-l`` has Ansible's host patterns, and node sets. A node set (``knl[0001-0016]``) is
also a pattern of Ansible, with another meaning: the numbers are positions in the group ``knl``.
Ansible counts them from 0, so that other hosts would be selected. A part of a pattern that reads as
names of hosts stands for these hosts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.grouping import flat
from proofmark.common.host_names import is_address
from proofmark.common.kit import ansible_constants
from proofmark.common.trust import OWN_COPY, refuse_untrusted, refuse_untrusted_below

LINK = "site"
"""The link, in the folder of the checkout."""
BESIDE_HOSTS = ("locks", "baselines", "allowed_signers", "contract.yml", "waivers.json", "seen")
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
        accepted = "exactly one site: -i inventory/<site>"
        if (kit / "ansible.cfg").exists():
            accepted += f", or `make site SITE=<site>` in {kit}, which chooses one of {_names(kit)}"
        raise bad_input("-i", "", "no site, and none is chosen", accepted)
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


def _names(kit: Path) -> str:
    return ", ".join(_sites(kit)) or "the folders of inventory/"


def _sites(kit: Path) -> list[str]:
    return sorted(path.name for path in Path(kit, "inventory").glob("*") if path.is_dir())


PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""A part of a pattern without wildcards, ranges and files (``@hosts.txt``)."""
MOST_GROUPS = 20
"""The number of groups that a message lists."""
_POSITIONS = re.compile(r"([^\[\]]+)\[(-?(?:0|[1-9]\d*)|(?:0|[1-9]\d*):(?:0|[1-9]\d*)?)\]")
"""A part with positions in a group, as Ansible documents them: ``knl[0]``, ``knl[0:15]``."""
_NUMBERS = re.compile(r"\[[\d,:/-]*\]")
_OTHER_CLASSES = re.compile(r"[*?]|\[!|\[[^\]]*[A-Za-z_]")
"""A wildcard of Ansible that is no range of numbers: ``knl*``, ``knl[!1]``, ``n[a-c]``."""
_ACCEPTED = (
    "names of hosts, node sets of hosts such as knl[0001-0016], groups, and positions in a group "
    "such as knl[0:15]"
)


def parts_of(limit: str) -> list[str]:
    """Return the parts of a pattern, with those of its files.

    Commas separate them; without a comma, colons do. A separator in brackets is part of a node set.

    Raises:
        BadInput: a file (``@hosts.txt``) cannot be read.
    """
    return flat(
        _lines_of(Path(part[1:])) if part.startswith("@") else [part] for part in _split(limit)
    )


def _split(limit: str) -> list[str]:
    parts = _split_at(limit, ",")
    if len(parts) == 1 and not limit.startswith("~") and not is_address(limit.strip("[]")):
        parts = _split_at(limit, ":")
    return [part.strip() for part in parts if part.strip()]


def _split_at(text: str, separator: str) -> list[str]:
    """Return the pieces of `text` between separators that are not in brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == separator and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return pieces


def _lines_of(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise bad_input("-l", f"@{file}", str(error), "a file with one pattern a line") from None
    return flat(map(_split, lines))


def named_hosts(part: str, groups: Collection[str], hosts: Collection[str]) -> list[str] | None:
    """Return the hosts that a part of a pattern names; None if it is a pattern for Ansible.

    Args:
        part: a part of the pattern, without ``!`` and ``&``.
        groups: the names of all groups of the inventory.
        hosts: the names of all hosts of the inventory.

    Raises:
        BadInput: the part reads as names of hosts, and not all of them are hosts. Or it is neither
            a name of the inventory nor a pattern.
    """
    if part in groups:
        return None
    if part in hosts:
        return [part]
    if PLAIN_NAME.fullmatch(part):
        raise BadInput(_unknown(part, groups, hosts))
    if part.startswith("~"):
        try:
            re.compile(part[1:])
        except re.error as error:
            accepted = "~ and a regular expression, as ~xeon0.*"
            raise bad_input("-l", "", f"{part!r}: {error}", accepted) from None
        return None
    if part.startswith("@") or part.count("[") != part.count("]"):
        raise bad_input("-l", "", repr(part), _ACCEPTED)
    if not _NUMBERS.search(part):
        return None
    # A completion imports this module, and must not wait for the library of node sets.
    from proofmark.common.nodesets import folded, unfold

    positions = _POSITIONS.fullmatch(part)
    of_group = positions is not None and positions[1] in groups
    try:
        names = unfold([_NUMBERS.sub(lambda match: match[0].replace(":", "-"), part)])
    except ValueError as error:
        if of_group or _OTHER_CLASSES.search(part):
            return None
        raise bad_input("-l", "", f"{part!r}: {error}", _ACCEPTED) from None
    missing = [name for name in names if name not in hosts]
    if not missing:
        return names
    if of_group and len(missing) == len(names):
        return None
    found = f"{part!r}: reads as names of hosts, and {folded(missing)} is not in the inventory"
    raise bad_input("-l", "", found, _ACCEPTED)


def limit_of_names(limit: str, groups: Collection[str], hosts: Collection[str]) -> str:
    """Return `limit` with names in place of its node sets; empty if it has none.

    Args:
        groups: the names of all groups of the inventory.
        hosts: the names of all hosts of the inventory.

    Raises:
        BadInput: as `named_hosts`.
    """
    named = []
    changed = False
    for part in parts_of(limit):
        pattern = part.lstrip("!&")
        names = named_hosts(pattern, groups, hosts)
        changed |= names is not None and names != [pattern]
        sign = part.removesuffix(pattern)
        named += [f"{sign}{name}" for name in ([pattern] if names is None else names)]
    return ",".join(named) if changed else ""


def selected(matches: Sequence[tuple[str, Sequence[str]]], everything: Sequence[str]) -> list[str]:
    """Return the hosts of a pattern, whose parts were resolved, in their order.

    Args:
        matches: each part of the pattern, and the hosts that it stands for.
        everything: all hosts, which a pattern without a part that adds hosts begins with.
    """
    added = [names for part, names in matches if part[:1] not in ("!", "&")]
    hosts = dict.fromkeys(chain.from_iterable(added or [everything]))
    for part, names in matches:
        listed = set(names)
        if part.startswith(("!", "&")):
            keep = part.startswith("&")
            hosts = {name: None for name in hosts if (name in listed) == keep}
    return list(hosts)


def pattern_of(hosts: Sequence[str], partition: str, everything: Sequence[str]) -> str:
    """Return a pattern for `hosts` of a partition that Ansible and the kit read alike."""
    chosen = set(hosts)
    others = [f"!{host}" for host in everything if host not in chosen]
    without = ",".join([partition, *others])
    return min((without, ",".join(hosts)), key=len) if others else without


def _unknown(name: str, groups: Collection[str], hosts: Collection[str]) -> InputError:
    """Return the mistake of a name that is neither a group nor a host."""
    hint = nearest(name, [*groups, *hosts])
    listed = sorted(set(groups) - {"ungrouped"})
    more = ", …" if len(listed) > MOST_GROUPS else ""
    accepted = f"hosts or groups of the inventory: {', '.join(listed[:MOST_GROUPS])}{more}"
    return InputError("-l", "", f"{name!r}: no host{hint}", accepted)
