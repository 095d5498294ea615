"""Emulates ``spack -e ENV config get packages``: prints the merged configuration of packages.

Mappings are merged, lists of the stronger scope stand before others, and other values replace, as a
key with ``::`` does. The strongest scope is that of ``--config-scope``, then the environment, then
what it includes. `tests/spack/test_site_request.py` compares it with Spack.
"""

import sys
from pathlib import Path
from typing import Any

import yaml


def merged(strong: Any, weak: Any) -> Any:
    if isinstance(strong, dict) and isinstance(weak, dict):
        both = {name: merged(strong[name], weak[name]) for name in strong.keys() & weak.keys()}
        replaced = {f"{name}".rstrip(":") for name in strong if f"{name}".endswith(":")}
        kept = {name: value for name, value in weak.items() if name not in replaced}
        return {**kept, **strong, **both}
    if isinstance(strong, list) and isinstance(weak, list):
        return [*strong, *(each for each in weak if each not in strong)]
    return strong


def packages_in(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text())
    loaded = loaded.get("spack", loaded)
    return {key: loaded[key] for key in ("packages", "packages:") if loaded.get(key)}


def main(words: list[str]) -> None:
    environment = Path(words[words.index("-e") + 1])
    content = yaml.safe_load((environment / "spack.yaml").read_text())["spack"]
    files = [environment / "spack.yaml"]
    for name in content.get("include", []):
        files.append(environment / name.replace("$operating_system", "debian12"))
    if "--config-scope" in words:
        files.insert(0, Path(words[words.index("--config-scope") + 1]) / "packages.yaml")
    providers = {"mpi": ["openmpi"], "blas": ["openblas"]}
    found: dict[str, Any] = {"packages": {"all": {"providers": providers}}}
    for path in reversed(files):
        found = merged(packages_in(path), found)
        found = {"packages": found.get("packages:") or found["packages"]}
    yaml.safe_dump(found, sys.stdout)


main(sys.argv[1:])
