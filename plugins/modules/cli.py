"""Documentation of `proofmark.kit.cli`; the action plugin of the same name does the work."""

from __future__ import annotations

DOCUMENTATION = """
module: cli
short_description: Run the command proofmark on the controller
version_added: 0.1.0
author: Proofmark authors
description:
  - Runs the C(proofmark) that stands beside the running C(ansible-playbook), on the controller.
  - What the command writes to stderr is shown while it runs, so long work shows how far it is.
  - When C(ansible-playbook) is stopped, by whatever signal, the command is stopped in order.
options:
  argv:
    description: The arguments of the command, one a list item.
    type: list
    elements: str
    required: true
  options:
    description:
      - Options by name without dashes; a list repeats one, V(true) is one without value.
      - What is empty or false is left out.
    type: dict
    default: {}
  json:
    description: Read stdout as JSON into RV(json).
    type: bool
    default: false
  writes:
    description:
      - The files that the command may write, as absolute patterns.
      - The task has changed something if the content of one of them is another afterwards.
      - A command that writes is not run in check mode.
    type: list
    elements: str
    default: []
  ok_codes:
    description: Exit codes that are no failure.
    type: list
    elements: int
    default: [0]
  user:
    description:
      - Run the command as this user, which needs root; empty is whoever runs C(ansible-playbook).
    type: str
    default: ""
  stdin:
    description:
      - What the command reads from its standard input; nothing if empty.
      - For secrets, which would be seen on a command line. Neither shown nor returned.
    type: str
    default: ""
attributes:
  check_mode:
    description: Commands that write nothing are run; the others say what they would run.
    support: full
"""

EXAMPLES = """
- name: Write the report
  proofmark.kit.cli:
    argv: [report, runs/latest]
    writes: [runs/latest/report.html]
"""

RETURN = """
cmd:
  description: The command as one would type it.
  returned: always
  type: str
rc:
  description: Its exit code; 3 is bad input.
  returned: when the command ran
  type: int
stdout:
  description: What it printed.
  returned: on success, unless it was asked for as JSON
  type: str
json:
  description: What it printed, read as JSON.
  returned: on success, when asked for
  type: raw
"""
