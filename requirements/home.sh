#!/bin/sh
# home.sh: print a folder for HOME in which this user can write: HOME, the home of the user database, or
# a folder below /tmp. Ansible runs scripts below HOME and does not quote a blank.
set -eu
cd "$(dirname "$0")/.."

own() { # own FOLDER: is it this user's, and can files be made in it?
    case $1 in *[[:space:]]*) return 1 ;; /*) ;; *) return 1 ;; esac
    [ -d "$1" ] && [ -O "$1" ] && [ -w "$1" ] && [ -x "$1" ]
}

told=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f6) || told=
made=/tmp/proofmark-home-$(id -u)
for home in "${HOME:-}" "$told" "$made"; do
    [ "$home" != "$made" ] || mkdir -m 700 "$made" 2>/dev/null || [ ! -L "$made" ] || break
    if own "$home"; then echo "$home" && exit; fi
done
home=$(pwd -P)/.ansible/home # another user has taken the folder below /tmp
mkdir -p "$home"
chmod 700 "$home"
echo "$home"
