"""Programs that Spack builds: its installation, its locks, build caches and bundles."""
