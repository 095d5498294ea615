#!/bin/sh
# home.sh: print a folder for HOME in which this user can write: HOME, the home of the user database, or
# a folder of this checkout. Ansible runs scripts below HOME and does not quote a blank.
set -eu
cd "$(dirname "$0")/.."

usable() { # usable FOLDER: does it belong to this user, and can only this user create files in it?
    case $1 in *[[:space:]]*) return 1 ;; /*) ;; *) return 1 ;; esac
    case $(ls -ld "$1/." 2>/dev/null) in ????????w*) return 1 ;; esac # all users: they could add plug-ins
    [ -d "$1" ] && [ -O "$1" ] && [ -w "$1" ] && [ -x "$1" ]
}

listed=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f6) || listed=
mine=$(pwd -P)/.ansible/home
for home in "${HOME:-}" "$listed" "$(readlink "$mine" || echo "$mine")"; do
    if usable "$home"; then echo "$home" && exit; fi
done
mkdir -p "${mine%/*}"
case $mine in
*[[:space:]]*) # a private folder elsewhere, with a random name
    home=$(mktemp -d)
    ln -sfn "$home" "$mine"
    ;;
*)
    home=$mine
    mkdir "$home"
    chmod 700 "$home"
    ;;
esac
echo "$home"
