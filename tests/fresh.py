"""Runs commands in a minimal Debian, in which only these commands install packages.

`python -m tests.fresh [--release trixie] [--clone PATH] [COMMAND …]` makes the system with
mmdebstrap, clones the last commit into it, and runs each command (sh text) in the clone. It stops
at the first command that fails. The system has its own processes, mounts and host name. It shares
the network with the host, and gets the settings of apt and pip at run time: they name the package
registries. Root only.
"""

from __future__ import annotations

import argparse
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import FrameType

from tests.folders import ROOT

RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
PACKAGES = ("ca-certificates", "git", "make")
"""The packages of the system besides dpkg's essential packages and apt."""
SETTINGS = ("/etc/apt/apt.conf.d", "/etc/apt/auth.conf.d", "/etc/pip.conf")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
REGISTRIES = re.compile(r"PIP_\w+|(?i:\w+_proxy)|SSL_CERT_FILE|REQUESTS_CA_BUNDLE")
"""Environment variables that define the registries of packages and the proxies."""
HOST = "fresh"
LOGIN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": pwd.getpwuid(0).pw_dir,
    "TERM": "dumb",
}
INSIDE = r"""
set -eu
system=$1 clone=$2 command=$3
mount --make-rprivate /
mount --bind "$system" "$system"
mount -t proc proc "$system/proc"
mount --rbind /sys "$system/sys"
mount --rbind /dev "$system/dev"
mount -t tmpfs -o mode=1777 tmpfs "$system/tmp"
mount -t tmpfs -o mode=755 tmpfs "$system/run"
wheels=${PIP_FIND_LINKS:-}
if [ -d "$wheels" ]; then
    mkdir -p "$system$wheels"
    mount -o bind,ro "$wheels" "$system$wheels"
fi
hostname "$(cat "$system/etc/hostname")"
# chroot alone is not enough: a process that enters these mounts (nsenter) would be outside of it.
cd "$system"
mkdir -p .outside
pivot_root . .outside
exec chroot . /bin/sh -c '
    umount -l /.outside && rmdir /.outside && cd "$1" && exec /bin/sh -c "$2"
' sh "$clone" "$command"
"""


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a login, with the variables of `host` for package registries."""
    return LOGIN | {name: value for name, value in host.items() if REGISTRIES.fullmatch(name)}


def main() -> int:
    """Install the system, run the commands, remove the system; return the exit code."""
    options = _options()
    if os.geteuid() != 0:
        print("tests.fresh: only root can mount and change the root folder", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    began = time.monotonic()

    def report(line: str) -> None:
        print(f"fresh {options.release}: {time.monotonic() - began:.0f} s: {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="proofmark-fresh-", dir="/var/tmp") as folder:
        system = Path(folder)
        system.chmod(0o755)
        report(f"installing a minimal {RELEASES[options.release]}")
        _install(system, options.release)
        commit = _clone(system, options.clone)
        report(f"cloned commit {commit} to {options.clone}")
        for command in options.commands:
            started = time.monotonic()
            code = _run(system, options.clone, command)
            report(f"{command}: exit code {code} after {time.monotonic() - started:.0f} s")
            if code:
                return code if code > 0 else 128 - code
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fresh", description=__doc__)
    parser.add_argument("--release", choices=RELEASES, default="bookworm")
    parser.add_argument("--clone", type=PurePosixPath, default=PurePosixPath("/srv/my kit"))
    parser.add_argument("commands", nargs="*", default=["make acceptance", "make test"])
    options = parser.parse_args()
    if not options.clone.is_absolute():
        parser.error(f"--clone: {options.clone} is relative; accepted: an absolute path")
    return options


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _install(system: Path, release: str) -> None:
    include = f"--include={','.join(PACKAGES)}"
    command = ["mmdebstrap", "--quiet", "--variant=minbase", include, release, str(system)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    for settings in map(Path, SETTINGS):
        target = system / settings.relative_to("/")
        if settings.is_dir():
            shutil.copytree(settings, target, dirs_exist_ok=True)
        elif settings.exists():
            shutil.copyfile(settings, target)
    shutil.copyfile(CERTIFICATES, system / CERTIFICATES.lstrip("/"))
    # As Debian's installer does: packages resolve the name of the host when they are installed.
    (system / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {HOST}\n", encoding="utf-8")
    (system / "etc/hostname").write_text(f"{HOST}\n", encoding="utf-8")


def _clone(system: Path, clone: PurePosixPath) -> str:
    """Clone the last commit of this checkout into `system`; return its short name."""
    target = system / clone.relative_to("/")
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, target], check=True)
    head = ["git", "-C", str(target), "rev-parse", "--short", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


def _run(system: Path, clone: PurePosixPath, command: str) -> int:
    """Run `command` in the clone and return its exit code; its remaining processes end with it."""
    isolation = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    words = [*isolation, "/bin/sh", "-c", INSIDE, "sh", str(system), str(clone), command]
    done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, env=environment(os.environ))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
