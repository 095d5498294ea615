"""Programs that Spack builds: its installation, its locks and bundles."""
