"""The launchers of the kit: one module and one class each.

The class is a subclass of `proofmark.jobs.launcher.Launcher`. The name of the module is the name
of the launcher.
"""
