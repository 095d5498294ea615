"""Runs commands in a minimal Debian, in which only these commands install packages.

`python -m tests.fresh [--release trixie] [--clone PATH] [--user NAME] [--show FOLDER] [COMMAND …]`
makes the system with mmdebstrap, clones the last commit into it, and runs each command (sh text) in
the clone. It stops at the first command that fails. With a user, the clone belongs to this new
user, who runs the commands. Before them root installs the missing packages by the command that
`make` prints for root. The system can read the folders of `--show`, for example with sources.
The system has its own processes, mounts and host name. It shares the network with the host, and
gets the settings of apt and pip at run time: they name the package registries. Root only.
"""

from __future__ import annotations

import argparse
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
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
USER = re.compile(r"[a-z_][a-z0-9_-]*")
"""Matches the names that `useradd` accepts."""
PREPARE = r"""
set -eu
useradd --create-home --shell /bin/sh "$user"
chown -R "$user:" .
printed=$(setpriv --reuid="$user" --regid="$user" --init-groups make .venv-dev 2>&1) && exit
install=$(printf '%s\n' "$printed" | sed -n 's/^  \(apt-get update && .*\)/\1/p')
[ -n "$install" ] || { printf '%s\n' "$printed" >&2 && exit 1; }
echo "root: $install"
export DEBIAN_FRONTEND=noninteractive
sh -c "$install" >/dev/null
"""
"""Makes a user, and installs as root what `make` prints as missing for the user."""
LOGIN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": pwd.getpwuid(0).pw_dir,
    "TERM": "dumb",
}
INSIDE = r"""
set -eu
system=$1 clone=$2 command=$3 user=$4
mount --make-rprivate /
mount --bind "$system" "$system"
mount -t proc proc "$system/proc"
mount --rbind /sys "$system/sys"
mount --rbind /dev "$system/dev"
mount -t tmpfs -o mode=755 tmpfs "$system/run"
printf '%s\n' "${PIP_FIND_LINKS:-}" "$SHOWN" | while read -r folder; do
    [ -d "$folder" ] || continue
    mkdir -p "$system$folder"
    mount -o bind,ro "$folder" "$system$folder"
done
hostname "$(cat "$system/etc/hostname")"
# chroot alone is not enough: a process that enters these mounts (nsenter) would be outside of it.
cd "$system"
mkdir -p .outside
pivot_root . .outside
exec chroot . /bin/sh -c '
    umount -l /.outside && rmdir /.outside && cd "$1" || exit
    command=$2 user=$3
    set --
    [ -z "$user" ] || {
        export HOME="/home/$user" USER="$user" LOGNAME="$user"
        set -- setpriv "--reuid=$user" "--regid=$user" --init-groups
    }
    exec "$@" /bin/sh -c "$command"
' sh "$clone" "$command" "$user"
"""


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a login, with the variables of `host` for package registries."""
    return LOGIN | {name: value for name, value in host.items() if REGISTRIES.fullmatch(name)}


def main() -> int:
    """Install the system, run the commands, remove the system; return the exit code."""
    options = options_of(sys.argv[1:])
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
        if options.user:
            report(f"{options.user}: {_prepare(system, options.clone, options.user)}")
        for command in options.commands:
            started = time.monotonic()
            code = _run(system, options.clone, command, options.user, options.show)
            report(f"{command}: exit code {code} after {time.monotonic() - started:.0f} s")
            if code:
                return code if code > 0 else 128 - code
    return 0


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line `words`."""
    parser = argparse.ArgumentParser(prog="python -m tests.fresh", description=__doc__)
    parser.add_argument("--release", choices=RELEASES, default="bookworm")
    parser.add_argument("--clone", type=PurePosixPath, default=PurePosixPath("/srv/my kit"))
    parser.add_argument("--user", default="", help="a new ordinary user who runs the commands")
    parser.add_argument(
        "--show", type=Path, action="append", default=[], help="a folder that the system can read"
    )
    parser.add_argument("commands", nargs="*", default=["make acceptance", "make test"])
    options = parser.parse_args(words)
    if not options.clone.is_absolute():
        parser.error(f"--clone: {options.clone} is relative; accepted: an absolute path")
    if options.user and (options.user == "root" or not USER.fullmatch(options.user)):
        accepted = "the name of a new user: small letters, digits, dashes and underscores"
        parser.error(f"--user: found {options.user!r}; accepted: {accepted}")
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


def _prepare(system: Path, clone: PurePosixPath, user: str) -> str:
    """Make `user`, to whom the clone then belongs, and install the packages; return the outcome."""
    code = _run(system, clone, f"user={shlex.quote(user)}\n{PREPARE}")
    if code:
        raise SystemExit(code if code > 0 else 128 - code)
    return "owns the clone; root installed the packages"


def _run(
    system: Path, clone: PurePosixPath, command: str, user: str = "", shown: Sequence[Path] = ()
) -> int:
    """Run `command` in the clone as `user`, or as root, and return its exit code.

    It can read the folders `shown` under their paths. Its remaining processes end with it.
    """
    isolation = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    inside = ["/bin/sh", "-c", INSIDE, "sh", str(system), str(clone), command, user]
    words = [*isolation, *inside]
    variables = environment(os.environ) | {"SHOWN": "\n".join(map(str, shown))}
    done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, env=variables)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
