"""Writes the table of variables in the README of each role, from its argument specs.

``python -m tests.role_pages`` writes them. A test compares the pages with the specs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.folders import ROOT

ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
BEGIN = "## Variables\n"
MARKUP = re.compile(r"[CV]\(([^)]*)\)")
"""Ansible's marks of code and values in a description."""


class Loader(yaml.SafeLoader):
    """Reads files of Ansible. ``!unsafe`` marks a text that Ansible does not evaluate."""


def _text(loader: Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


Loader.add_constructor("!unsafe", _text)


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file of Ansible."""
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)
    assert isinstance(content, dict)
    return content


def entry_points(role: Path) -> dict[str, dict[str, Any]]:
    """Return the options of each entry point of a role, by name."""
    specs = read(role / "meta/argument_specs.yml")["argument_specs"]
    return {name: entry.get("options", {}) for name, entry in specs.items()}


def table(role: Path) -> Iterator[str]:
    """Yield the lines of the table of a role: one for each variable."""
    points = entry_points(role)
    yield "\n`ansible-doc -t role proofmark.kit." + role.name + "` prints them too.\n"
    yield "| variable | entry points | type | default | meaning |"
    yield "|---|---|---|---|---|"
    for name in dict.fromkeys(name for options in points.values() for name in options):
        users = [point for point, options in points.items() if name in options]
        option = points[users[0]][name]
        default = option["default"]
        text = " ".join(default.split()) if isinstance(default, str) else ""
        shown = text or json.dumps(default)
        meaning = MARKUP.sub(r"`\1`", " ".join(option["description"].split()))
        cells = (
            f"`{name}`",
            ", ".join(users),
            option["type"],
            f"`{shown}`",
            meaning,
        )
        yield f"| {' | '.join(_cell(each) for each in cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def example(role: Path) -> str:
    """Return the play in the README of a role."""
    text = (role / "README.md").read_text(encoding="utf-8").partition("## Example\n")[2]
    return text.partition("```yaml\n")[2].partition("```")[0]


def page(role: Path) -> str:
    """Return the README of a role with its present variables."""
    head = (role / "README.md").read_text(encoding="utf-8").partition(BEGIN)[0]
    return head + BEGIN + "\n".join(table(role)) + "\n"


def main() -> None:
    """Write the pages."""
    for role in ROLES:
        (role / "README.md").write_text(page(role), encoding="utf-8")


if __name__ == "__main__":
    main()
