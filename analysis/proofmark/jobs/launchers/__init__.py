"""The launchers of the kit: subclasses of `proofmark.jobs.launcher.Launcher`."""
