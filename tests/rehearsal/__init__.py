"""A rehearsal: the playbooks, unchanged, on a virtual machine room. See docs/rehearsal.md."""
