"""A rehearsal: the unchanged playbooks on a virtual cluster. See docs/rehearsal.md."""
