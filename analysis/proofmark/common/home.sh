#!/bin/sh
# home.sh [PLACE…]: print a folder for HOME in which this user can write: HOME, the home of the user
# database, or a folder of this user in PLACE (default: /var/tmp, which survives a reboot, and /tmp).
# Ansible, git, pip, Spack and matplotlib write there, and load settings and plug-ins from there.
set -eu

usable() { # usable FOLDER: does it belong to this user, can only this user create files in it, has it room?
    case $1 in *[[:space:]]*) return 1 ;; /*) ;; *) return 1 ;; esac # Ansible does not quote a blank
    case $(ls -ld "$1/." 2>/dev/null) in ????????w*) return 1 ;; esac # all users: they could add plug-ins
    [ -d "$1" ] && [ -O "$1" ] && [ -w "$1" ] && [ -x "$1" ] && has_room "$1"
}

has_room() {
    file=$(mktemp "$1/.proofmark-XXXXXXXX" 2>/dev/null) || return 1
    written=yes
    dd if=/dev/zero of="$file" bs=65536 count=1 2>/dev/null || written=
    rm -f "$file"
    [ -n "$written" ]
}

me=$(id -u)
listed=$(getent passwd "$me" 2>/dev/null | cut -d: -f6) || listed=
for home in "${HOME:-}" "$listed"; do
    if usable "$home"; then echo "$home" && exit; fi
done
[ $# -gt 0 ] || set -- /var/tmp /tmp
for place; do
    home=$place/proofmark-home-$me
    # In a sticky folder only its owner can replace a folder. Another user may have made a link.
    [ -k "$place" ] || continue
    (umask 077 && mkdir "$home" 2>/dev/null) || :
    if [ ! -L "$home" ] && usable "$home"; then echo "$home" && exit; fi
done
echo "HOME: found '${HOME:-}', where this user cannot write; accepted: a folder of this user with free space," \
    "or $* for one named proofmark-home-$me" >&2
exit 3
