"""Writes YAML for an inventory. Every text in it is a literal: Ansible evaluates none of them.

All code of the kit that writes or prints a part of an inventory uses `literal_yaml`. A node, a
scheduler or the run user may have produced a text.
"""

from __future__ import annotations

from typing import Any

import yaml

TEMPLATES = ("{{", "{%", "{#")
"""Ansible evaluates a text that contains one of these."""
OVERRIDE = "#jinja2:"
"""A text that begins with it names other marks (Ansible, "Overriding Jinja2 variables")."""
BREAKS = "\x85\u2028\u2029"
"""YAML 1.1 ends a line at these characters, too. Only a text in double quotes keeps them."""
UNSAFE = "!unsafe"
"""The tag of a text that Ansible does not evaluate."""


class _Dumper(yaml.SafeDumper):
    """Tags texts that Ansible would evaluate."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    if is_template(text):
        return dumper.represent_scalar(UNSAFE, text, style='"')
    if any(mark in text for mark in BREAKS):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
    return dumper.represent_str(text)


_Dumper.add_representer(str, _text)


def is_template(text: str) -> bool:
    """Return whether Ansible would evaluate `text` as a value of an inventory."""
    return text.startswith(OVERRIDE) or any(mark in text for mark in TEMPLATES)


def literal_yaml(value: Any, *, flow: bool = False, width: float = 10**6) -> str:
    """Return `value` as YAML whose texts are literals.

    Args:
        value: texts, numbers, truth values and None, and lists and mappings of them.
        width: the longest line, where YAML allows a break.
    """
    dumped: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=flow,
        sort_keys=False,
        width=width,
        allow_unicode=True,
    )
    return dumped
