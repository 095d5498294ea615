"""Documentation of `proofmark.kit.cli`; the action plug-in of the same name runs it."""

from __future__ import annotations

DOCUMENTATION = """
module: cli
short_description: Run the command proofmark on the controller
version_added: 0.1.0
author: Proofmark authors
description:
  - Runs, on the controller, the C(proofmark) in the folder of the running C(ansible-playbook).
  - The lines that the command writes to stderr are shown while it runs.
  - A signal that stops C(ansible-playbook) also stops the command, and the command ends its job.
options:
  argv:
    description: The arguments of the command, one per list item.
    type: list
    elements: str
    required: true
  options:
    description:
      - Options by name without dashes. A list repeats an option. V(true) gives one without value.
      - An option that is empty or false is left out.
    type: dict
    default: {}
  json:
    description:
      - Read stdout as JSON into RV(json).
      - The task reports a change if RV(json) has the key C(changed) with a value that is not empty.
    type: bool
    default: false
  shown:
    description: Show the lines of stdout as they are. Ansible breaks the lines of a message.
    type: bool
    default: false
  writes:
    description:
      - The files that the command may write, as absolute patterns.
      - The task reports a change if the content of one of these files has changed.
      - A command that writes is not run in check mode.
    type: list
    elements: str
    default: []
  ok_codes:
    description: Exit codes that are not a failure.
    type: list
    elements: int
    default: [0]
  stdin:
    description:
      - Text that the command reads from its standard input, for example output of a node.
      - Use it for secrets, which other users could read in a command line. Never shown or returned.
    type: str
    default: ""
  groups:
    description:
      - Hand the partitions of the inventory to the command as this play resolves them; the command
        then does not read the inventory again.
      - Options of the play count, for example C(-u), C(--private-key), C(-K) and vault passwords.
    type: bool
    default: false
  beside:
    description:
      - The arguments of a second command that runs while the command runs, and is then terminated.
      - Its errors are warnings.
      - It gets the partitions of the inventory as this play resolves them, as with O(groups).
    type: list
    elements: str
    default: []
  beside_options:
    description: Options of the second command, as in O(options).
    type: dict
    default: {}
  beside_stdin:
    description:
      - Text that the second command reads from its standard input. Never shown or returned.
    type: str
    default: ""
attributes:
  check_mode:
    description: A command that writes nothing is run; any other is only shown.
    support: full
"""

EXAMPLES = """
- name: Write the report
  proofmark.kit.cli:
    argv: [report, runs/latest-local]
    writes: [runs/latest-local/report.html]
"""

RETURN = """
cmd:
  description: The command line.
  returned: always
  type: str
rc:
  description: Its exit code; 3 is bad input, 70 an error of the kit (docs/verdict.md).
  returned: when the command ran
  type: int
stdout:
  description: Its standard output.
  returned: on success, unless O(json) is set
  type: str
failed_nodes:
  description: The hosts of the inventory that failed in the command, each with its reason.
  returned: when the command ran
  type: dict
json:
  description: Its standard output, read as JSON.
  returned: on success, if O(json) is set
  type: raw
"""
