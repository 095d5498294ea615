"""The documented functions for plug-ins of Ansible and for a site's own programs.

May import: every room but cli. What is not named here may change without notice.
"""
