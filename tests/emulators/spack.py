#!/usr/bin/env python3
"""Emulates Spack: accepts only the two calls that the role makes, for dependencies and packages.

`install` writes prefixes and the database of Spack, and prints the output of Spack 1.1. In the
folder ``PROOFMARK_FAKE`` the file `fails` names packages whose installation fails, the file
`hangs` packages whose installation sleeps, and the file `recipes` packages with other recipes.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NoReturn


def refuse(words: object) -> NoReturn:
    sys.exit(f"==> Error: the emulated Spack refuses {words}")


def packages_in(name: str) -> list[str]:
    path = Path(os.environ["PROOFMARK_FAKE"]) / name
    return path.read_text().split() if path.exists() else []


def fail(stage: Path, package: str, name: str) -> NoReturn:
    """End as Spack does if the compiler finds no header."""
    error = "a.c:2:10: fatal error: mpi.h: No such file or directory"
    log = stage / f"spack-stage-{name}/spack-build-out.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"gcc -c a.c\n{error}\nmake: *** [Makefile:2: all] Error 1\n")
    print(f"==> {package}: Executing phase: 'build'")
    print("==> Error: ProcessError: Command exited with status 2:\n    '/usr/bin/make'\n")
    print(f"See build log for details:\n  {log}\n")
    sys.exit(1)


def main(words: list[str]) -> None:
    if words[:2] == ["--color=never", "-e"] and words[3:4] == ["python"]:
        fields = {"locked_spec": "s", "spec": "s", "locked_recipe": "locked", "recipe": "changed"}
        print(json.dumps([{"label": name, **fields} for name in packages_in("recipes")]))
        return
    if words[:2] != ["--color=never", "-e"] or words[3:5] != ["install", "--only-concrete"]:
        refuse(words)
    scope = Path(os.environ["SPACK_USER_CONFIG_PATH"])
    if "builtin" not in (scope / "repos.yaml").read_text():
        refuse("a user scope without the builtin recipes")
    for name in ("SPACK_SYSTEM_CONFIG_PATH", "SPACK_USER_CACHE_PATH", "SPACK_PYTHON"):
        if not Path(os.environ[name]).is_relative_to(scope.parent):
            refuse(f"{name} outside of its folder")
    lock = json.loads((Path(words[2]) / "spack.lock").read_text())["concrete_specs"]
    store = scope.parent / "store"
    database = store / ".spack-db/index.json"
    known: dict[str, Any] = {"database": {"version": "8", "installs": {}}}
    if database.exists():
        known = json.loads(database.read_text())
    order: list[str] = []

    def visit(key: str) -> None:
        for edge in lock[key].get("dependencies", []):
            visit(edge["hash"])
        if key not in order:
            order.append(key)

    roots = words[5:]
    if roots[:1] == ["-j"]:
        print(f"==> {roots[1]} processes")
        roots = roots[2:]
    part = roots.pop(0)
    for word in roots:
        visit(word.removeprefix("/"))
    recording = "SPACK_ADD_DEBUG_FLAGS" in os.environ
    if (part, recording) not in {("--only=dependencies", False), ("--only=package", True)}:
        refuse(f"{part} with recording={recording}")
    asked = {word.removeprefix("/") for word in roots}
    order = [key for key in order if (key in asked) == recording]
    for number, key in enumerate(order, 1):
        spec = lock[key]
        name = f"{spec['name']}-{spec['version']}-{key}"
        if key in known["database"]["installs"]:
            print(f"[+] {store / name}")
            continue
        print(f"==> Installing {name} [{number}/{len(order)}]")
        if spec["name"] in packages_in("hangs"):
            sys.stdout.flush()
            time.sleep(120)
        if spec["name"] in packages_in("fails"):
            fail(scope.parent / "stage", spec["name"], name)
        (store / name / "bin").mkdir(parents=True)
        shutil.copy("/bin/sh", store / name / "bin/sh")
        known["database"]["installs"][key] = {"path": str(store / name), "installed": True}
        database.parent.mkdir(exist_ok=True)
        database.write_text(json.dumps(known))
        print(f"==> {spec['name']}: Successfully installed {name}")


main(sys.argv[1:])
